package lab

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"admitone/internal/acquirer"
)

// acquirerWait is how long the slow and the late acquirer keep the ledger waiting:
// longer than the ledger keeps its caller, shorter than it waits itself.
const acquirerWait = 8 * time.Second

// bank is the lab's payment service. It lives in the lab's own process, so that its
// memory outlives the ledger that is killed.
type bank struct {
	sim *acquirer.Sim
	srv *http.Server
	url string
}

func openBank() (*bank, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open acquirer: %w", err)
	}
	b := &bank{sim: acquirer.NewSim(acquirerWait), url: "http://" + ln.Addr().String() + "/"}
	b.srv = &http.Server{Handler: b.sim}
	go b.srv.Serve(ln) // until close
	return b, nil
}

func (b *bank) close() {
	if b != nil {
		b.srv.Close()
	}
}

// Acquirer says what the payment service does with charges that are new to it:
// approve, decline, fail, slow, late or lose.
func (l *Lab) Acquirer(how string) error {
	b, err := acquirer.ParseBehaviour(how)
	if err != nil {
		return err
	}
	l.bank.sim.Behave(func(string) acquirer.Behaviour { return b })
	return nil
}

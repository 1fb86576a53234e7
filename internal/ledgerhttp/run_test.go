package ledgerhttp

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
)

// TestRunServesUntilCancelled: Run answers, refuses a head that is too large,
// and returns nil when it is cancelled; its port is free then.
func TestRunServesUntilCancelled(t *testing.T) {
	srv := plainServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx, l) }()

	resp, err := http.Get("http://" + addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if got := raw(t, addr, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 2*maxHeader)+"\r\n\r\n"); !strings.Contains(got, "431") {
		t.Errorf("a huge head got %q, want 431", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if l, err := net.Listen("tcp", addr); err != nil {
		t.Errorf("the port is not free: %v", err)
	} else {
		l.Close()
	}
}

// plainServer is a server on an empty ledger, without keys.
func plainServer(t *testing.T) *Server {
	t.Helper()
	store := ledgerstore.New(kv.NewMem())
	log := slog.New(slog.DiscardHandler)
	core, err := ledger.New(store, ledger.Options{Process: "1", Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := New(Options{Ledger: core, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// TestRunTellsWhyItEnded: a listener that breaks is an error, not a silent end.
func TestRunTellsWhyItEnded(t *testing.T) {
	srv := plainServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := srv.Run(context.Background(), l); err == nil {
		t.Error("got nil, want an error")
	}
}

func raw(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

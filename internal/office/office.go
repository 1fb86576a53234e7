package office

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"admitone/internal/ticket"
)

// Ledger is what the office needs of the ledger.
type Ledger interface {
	// Programme gives what is on.
	Programme(ctx context.Context) (ticket.Programme, error)

	// Within runs fn in one transaction of the books and of the ledger, with the
	// promises of Books.Update.
	Within(ctx context.Context, fn func(tx Tx, gates Gates) error) error
}

// Gates is what a refund changes of the ledger, within its transaction.
type Gates interface {
	// Revoke tells all gates to refuse a ticket.
	Revoke(id ticket.ID, by string) error

	// Used reports whether somebody is in with a ticket, or at a gate with it.
	Used(event string, id ticket.ID) (bool, error)
}

// Options of an office. Books, Ledger, Answer, Process, Now and Log are required.
type Options struct {
	Books  Books
	Ledger Ledger

	// Answer writes down what an intent came to, in the form in which its caller
	// and every repeat get it.
	Answer func(Result) ([]byte, error)

	Signer        *ticket.Signer // nil: nothing can be sold
	Acquirer      Acquirer       // nil: no cards
	Timeout       time.Duration  // of one request to the acquirer; 0: 20 s
	CardByDefault bool           // a sale that names no payment is charged by the acquirer
	Forget        []string       // the endpoints of the seen table whose rows Run forgets when their time is over
	Process       string         // this ledger among several on one store
	Now           func() time.Time
	Log           *slog.Logger
}

// Office sells and takes back.
type Office struct {
	opt    Options
	holder string // PROCESS/RUN: of the work that this opening has in hand
	jobs   chan work
}

// New makes an office; it starts nothing.
func New(o Options) (*Office, error) {
	if o.Books == nil || o.Ledger == nil || o.Answer == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("open office: books, ledger, answer, clock and log are required")
	}
	if o.Process == "" || strings.Contains(o.Process, "/") {
		return nil, fmt.Errorf("open office: process %q, want a name without slashes", o.Process)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Office{opt: o, holder: o.Process + "/" + rand.Text(), jobs: make(chan work)}, nil
}

// Run does what the acquirer is needed for, takes over what others left undone, and
// forgets what is past its window. It returns nil when cancelled.
func (o *Office) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { o.look(ctx) })
	free := make(chan struct{}, atOnce)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		select {
		case w := <-o.jobs:
			wg.Go(func() {
				o.tell(ctx, "settle payment", o.attempt(ctx, w))
				<-free
			})
		case <-ctx.Done():
			return nil
		}
	}
}

// look finds what is due, again and again.
func (o *Office) look(ctx context.Context) {
	every := time.NewTicker(resume)
	defer every.Stop()
	for n := 0; ; n++ {
		taken, err := o.due(ctx, n == 0)
		o.tell(ctx, "look for work", err)
		for _, w := range taken {
			o.opt.Log.Info("payment resumed", "key", w.ID, "tries", w.Tries)
			select {
			case o.jobs <- w:
			case <-ctx.Done():
				return
			}
		}
		if n%forgetEvery == 0 {
			o.tell(ctx, "forget keys", o.forget(ctx))
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell logs an error of work that will be tried again. Where the store itself has
// to be opened anew, the ledger finds that out, too, and ends the process.
func (o *Office) tell(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil {
		o.opt.Log.Error("office", "doing", doing, "err", err)
	}
}

// Rows are forgotten some at a time, so that no request waits long for it.
const (
	forgetEvery = 10 // looks
	forgetBatch = 500
)

// forget takes out the rows whose window is over.
func (o *Office) forget(ctx context.Context) error {
	for _, endpoint := range o.opt.Forget {
		for n := forgetBatch; n == forgetBatch; {
			err := o.opt.Books.Update(ctx, func(tx Tx) (err error) {
				n, err = tx.Seen().Prune(endpoint, o.opt.Now(), forgetBatch)
				return err
			})
			if err != nil {
				return fmt.Errorf("forget rows of %s: %w", endpoint, err)
			}
		}
	}
	return nil
}

package office

import (
	"context"
	"errors"
	"time"
)

// Acquirer moves money by cards: work in the world, which no transaction of ours
// can undo.
type Acquirer interface {
	// Move moves money, at most once for each key: asked again with the same key it
	// gives the first answer, or moves it where the first request never arrived. It
	// returns ErrNotMoved where this very request certainly moved nothing and will
	// not. After any other error nobody knows, and it has to be asked again.
	Move(ctx context.Context, t Transfer) (Moved, error)
}

// ErrNotMoved is returned by an Acquirer that failed, or was not reached.
var ErrNotMoved = errors.New("no money was moved")

// Transfer is what an acquirer is asked to do.
type Transfer struct {
	// Key names the intent: the id of the order or refund, which is drawn when the
	// client's key is claimed and kept with it. So it is the same for every retry,
	// and another one when the client's key comes anew after its window, which an
	// acquirer with a longer memory would take for a retry.
	Key string

	Amount   int64  // minor units, more than 0
	Currency string // ISO 4217
	Invoice  string // for the statement
	Refund   string // the Reference of the charge that is given back; "": a charge
}

// Moved is an acquirer's answer.
type Moved struct {
	Reference string // its own name for what it did
	Declined  string // why it declined; "": it did it
}

// defaultTimeout bounds one request to the acquirer. Its answer is waited for
// although the client has gone: it is of use to the client's retry.
const defaultTimeout = 20 * time.Second

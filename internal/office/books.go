package office

import (
	"context"
	"errors"

	"admitone/internal/seen"
)

// Books is where the office, and the API beside it, keep what they must not lose:
// the ledger's own store, so that a row of the seen table, the work it stands for
// and its result are one transaction. Package ledgerstore implements it; the suite
// that every implementation passes is ledgertest.RunOffice.
type Books interface {
	// View runs fn in a read transaction, which shows what is durable.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn in a write transaction and returns after it is durable.
	// Where fn returns an error nothing of it stays. fn may run more than once,
	// and then only its last run counts: it resets what it collects.
	Update(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction on the books: the seen table, and tables of rows that are
// all of one shape. Slices given and returned are the caller's to keep.
type Tx interface {
	// Seen is the table of rows that decides who was first.
	Seen() seen.Tx

	// Add inserts a row if its table has none of that id, and reports whether it
	// did: the constraint decides, never a look before.
	Add(r Row) (bool, error)

	// Put inserts a row, or replaces it with its place in a list.
	Put(r Row) error

	// Get gives a row. Within Update what it gave stays true until the commit.
	Get(t Table, id string) (Row, bool, error)

	// Drop removes a row; one that is not there is no error.
	Drop(t Table, id string) error

	// Page gives up to limit rows of a list, ordered by At and then ID (bytewise), after a
	// cursor ("": from the start); next is the cursor of the last one given, and
	// of none the same again. It returns ErrCursor for what is no cursor.
	Page(t Table, list, after string, limit int) (rows []Row, next string, err error)
}

// ErrCursor is returned by Tx.Page for a cursor that no page gave.
var ErrCursor = errors.New("not a cursor of this list")

// Table names one of the tables of rows. A name has 1 to 32 of a-z and dots, and
// belongs to the package that keeps its rows in it.
type Table string

// Row is one row of a table: what it is found by, and a body.
type Row struct {
	Table Table
	ID    string // 1 to 512 bytes, any; unique in its table
	List  string // the list of its table that it stands in, as Page names it, at most 512 bytes; "": in none
	At    int64  // what its list is ordered by: a time in Unix nanoseconds, or a number
	Body  []byte // in the form of the package that the table belongs to
}

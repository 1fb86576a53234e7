// Package seen is the primitive under everything that must happen once: one table
// of rows (key, first seen, result), one unique constraint, and a policy as data
// that says whether a repeat is echoed or refused. A ticket gate is an idempotency
// key pointed the other way; both use this table.
//
// Implementations bind the table to a transaction of the store that holds it, so
// that a row and the work it stands for are one transaction. All of them pass the
// suite in seentest.
package seen

import "time"

// Repeat says what a second request with the same key gets.
type Repeat string

// The two ways to answer a repeat.
const (
	Echo   Repeat = "echo"   // the first result again: a retry is invisible
	Refuse Repeat = "refuse" // the first time and place: a repeat fails loudly
)

// Policy is the row of the policy table that stands for one endpoint.
type Policy struct {
	Endpoint string        // the first part of every key, as in "ticket"
	OnRepeat Repeat        //
	Remember time.Duration // how long a row lives where the request names no Until; 0: for ever
}

// Key is endpoint + scope + identifier; unique.
type Key struct {
	Endpoint string // Policy.Endpoint
	Scope    string // a caller, a gate, an event: whatever the identifier is unique within
	ID       string // the identifier; any bytes
}

// Request is one presentation of a key.
type Request struct {
	Key         Key
	At          time.Time // when it was presented
	Place       string    // where: a gate's place, a caller
	Holder      string    // who works on it: a late result of an earlier holder changes nothing
	Fingerprint []byte    // of the request, so that the same key with another request shows; nil: not told apart
	Until       time.Time // remembered until then; zero: At + Policy.Remember
}

// Row is a stored first request.
type Row struct {
	Key         Key
	FirstSeen   time.Time
	Place       string
	Holder      string
	Fingerprint []byte
	Result      []byte    // empty while in progress
	Done        bool      // a result is stored (it may be empty)
	Until       time.Time // zero: for ever
}

// Outcome is what a claim of a key came to.
type Outcome uint8

// The outcomes.
const (
	Won        Outcome = iota + 1 // the key was new: do the work, then Finish
	Echoed                        // seen before, with a result, and the policy echoes: Row.Result is the answer
	Refused                       // seen before, with a result, and the policy refuses: cite Row
	InProgress                    // seen before, no result yet: Row.Holder works on it
	Mismatch                      // seen before with another fingerprint; nothing changed
)

// Answer is an outcome with the row it speaks of: the stored one, which for Won
// is the one just made.
type Answer struct {
	Outcome Outcome
	Row     Row
}

// Tx is the table within one transaction. The unique constraint decides: two
// concurrent claims of one key are serialised by it, one wins, and the other
// reads the winner's row.
type Tx interface {
	// Claim inserts the row if its key is absent, or if the stored row's Until
	// has passed by r.At (a key that comes after its window is a new intent).
	Claim(p Policy, r Request) (Answer, error)

	// Finish stores the result of the holder's work; later results of the same
	// holder replace it. It reports false, and changes nothing, where the row is
	// absent or held by another.
	Finish(k Key, holder string, result []byte) (bool, error)

	// Take hands a row over from one holder to another request, in place: first
	// seen, place, holder and fingerprint are the new request's and the result is
	// empty. It reports false, and changes nothing, where from is not the holder.
	Take(p Policy, from string, r Request) (bool, error)

	// Drop removes an unfinished row whose work was refused or failed, so that
	// it leaves nothing. It reports false, and changes nothing, where the row is
	// finished, absent or held by another.
	Drop(k Key, holder string) (bool, error)

	// Get gives the row of a key.
	Get(k Key) (Row, bool, error)

	// Prune removes up to limit rows of the endpoint whose Until is not after now,
	// and says how many. It reads only what it removes.
	Prune(endpoint string, now time.Time, limit int) (int, error)

	// PruneScope removes up to limit rows of one scope of the endpoint whatever
	// their Until, and says how many: for an event that is closed.
	PruneScope(endpoint, scope string, limit int) (int, error)
}

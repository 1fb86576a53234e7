package ledger

import (
	"context"
	"errors"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// Errors of a commit that failed.
var (
	// ErrUnknown is returned by a Store when a commit failed, or its answer was
	// lost: whether the writes are durable cannot be known. That is so for this one
	// call; who made it could not find out, and asks again.
	ErrUnknown = errors.New("commit failed, its outcome is unknown")

	// ErrBroken comes with ErrUnknown from a Store that is of no use after it, such
	// as one on a file, and is all that it returns from then on: the process must
	// stop and reopen. A database's connection that was lost in a commit is replaced
	// instead, and the store goes on.
	ErrBroken = errors.New("the store must be reopened")
)

// Store holds the ledger's tables. Package ledgerstore implements it; the suite
// that every implementation passes is ledgertest.
type Store interface {
	// View runs fn once, in a read transaction: all of it sees one state.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn in a write transaction and returns after it is durable. Where
	// fn returns an error its writes are undone. fn may run more than once, where
	// transactions got in each other's way: what an earlier run wrote is undone, and
	// only the last run counts. So fn begins by resetting whatever it collects
	// outside of the transaction, and does nothing else that cannot be undone.
	//
	// Transactions are serialised at least per ticket, run, subject, conflict, alarm
	// and event: what fn read of them stays true until it is committed, but for the
	// counts of an EventRow, which others may move meanwhile. What PutEvent changes
	// of a count is added to it.
	Update(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction. Slices given and returned are the caller's to keep. No
// method may be called from within a callback of another.
type Tx interface {
	// Seen is the table of rows that decides who was first.
	Seen() seen.Tx

	// Stream gives the row of a run; the zero row where it is not known.
	Stream(s ticket.Stream) (StreamRow, error)
	PutStream(s ticket.Stream, r StreamRow) error

	// Streams calls fn for each run of a source ("": of all), ordered by source
	// and run, until it returns false.
	Streams(source ticket.Source, fn func(ticket.Stream, StreamRow) bool) error

	// PutRecord inserts what arrived at a position, if the position is empty:
	// the constraint decides, never a look before.
	PutRecord(s ticket.Stream, pos uint64, k Kept) (Put, error)

	// SetRecord replaces a position; only after a fork.
	SetRecord(s ticket.Stream, pos uint64, k Kept) error
	Record(s ticket.Stream, pos uint64) (Kept, bool, error)

	// Records calls fn for the records after a position in ascending order,
	// until it returns false.
	Records(s ticket.Stream, after uint64, fn func(pos uint64, k Kept) bool) error

	// DropRecord removes a position; an empty one is no error.
	DropRecord(s ticket.Stream, pos uint64) error

	// Claims gives the claims of a unit, one row each, ordered by id.
	Claims(u ticket.Unit) ([]ClaimRow, error)

	// TicketClaims gives the claims of all units of a ticket in one event.
	TicketClaims(event string, f ticket.Format, id ticket.ID) ([]ClaimRow, error)

	// ClaimUnit gives the unit under which a claim was first stored.
	ClaimUnit(id ticket.ClaimID) (ticket.Unit, bool, error)

	// PutClaim stores the row of Claim.ID under Claim.Unit. The record at (gate,
	// Run, Pos) must be stored already: rows point at it.
	PutClaim(r ClaimRow) error

	// PutDue lists a pending claim under the time at which it becomes overdue,
	// DropDue takes it out, and Due gives the first ones due before a time.
	PutDue(at int64, id ticket.ClaimID, u ticket.Unit) error
	DropDue(at int64, id ticket.ClaimID) error
	Due(before int64, limit int) ([]DueRow, error)

	// Subject gives the feed entry of the highest version of a subject.
	Subject(name string) (SubjectRow, bool, error)
	PutSubject(name string, r SubjectRow) error

	// Subjects calls fn for each subject with the prefix, in order, until it
	// returns false.
	Subjects(prefix string, fn func(name string, r SubjectRow) bool) error

	Conflict(id string) (ConflictRow, bool, error)
	PutConflict(r ConflictRow) error

	// Conflicts lists by the time of announcement, after a cursor ("": from the
	// start); next is the cursor of the last one given.
	Conflicts(after string, limit int) (rows []ConflictRow, next string, err error)

	Alarm(id string) (Alarm, bool, error)
	PutAlarm(a Alarm) error

	// Alarms lists by time, as Conflicts does.
	Alarms(after string, limit int) (rows []Alarm, next string, err error)

	// Event gives what is counted of an event; the zero row where nothing is.
	Event(id string) (EventRow, error)
	PutEvent(id string, r EventRow) error
	Events(fn func(id string, r EventRow) bool) error

	// Gate gives when a device was last heard for certain; the zero row where never.
	Gate(d ticket.Source) (GateRow, error)
	PutGate(d ticket.Source, r GateRow) error

	// PutLate keeps a record that came after its event was pruned.
	PutLate(event string, s ticket.Stream, pos uint64, raw []byte) error

	// Late lists late records in no particular order, after a cursor.
	Late(after string, limit int) (rows []LateRow, next string, err error)

	// DropClaims removes up to limit claims of an event with all that hangs on
	// them but their records and rows of the seen table, and says how many.
	DropClaims(event string, limit int) (int, error)
}

// Put says what inserting a record came to.
type Put uint8

// The outcomes of PutRecord.
const (
	PutNew       Put = iota + 1
	PutDuplicate     // the same is there; nothing changed
	PutForked        // something else is there; nothing changed
)

// Kept is what is held at a position: a record's bytes, or, set aside, what could
// not be read as the record that belongs there (it may be empty).
type Kept struct {
	Raw   []byte
	Aside bool
}

// StreamRow says how far one run is held. High-waters are kept for ever.
type StreamRow struct {
	High  uint64 // positions up to High are here, were here, or are lost
	Top   uint64 // the highest position stored, beyond a gap or not
	Head  uint64 // the highest position its source ever named
	Base  uint64 // positions up to Base were pruned and cannot be fetched
	Lost  uint64 // positions that never came: pruned at the source before the ledger had them
	Aside uint64 // positions set aside
}

// last is the last position that anything was ever told of.
func (r StreamRow) last() uint64 { return max(r.Top, r.Head) }

// ClaimRow is a claim as the ledger knows it.
type ClaimRow struct {
	Claim  ticket.Claim  // the revision that wins
	Raw    []byte        // its record
	Run    ticket.Run    // the run of its gate that the record stands in
	Pos    uint64        // and the position
	Since  int64         // when the claim first arrived here, by the ledger's clock, Unix nanoseconds
	Answer ticket.Answer // AnswerNone: not asked
}

// due is when a pending claim becomes overdue.
func (r ClaimRow) due() int64 { return r.Since + int64(r.Claim.Lease) }

// DueRow is a pending claim that became overdue.
type DueRow struct {
	At    int64
	Claim ticket.ClaimID
	Unit  ticket.Unit
}

// SubjectRow points at the feed record that holds for a subject.
type SubjectRow struct {
	Version uint64
	Source  ticket.Source
	Run     ticket.Run
	Pos     uint64
}

// EventRow counts what an event came to.
type EventRow struct {
	Admitted  uint64 // claims that stand admitted, or presumed so
	Conflicts uint64 // not withdrawn
	Alarms    uint64
	Late      uint64 // records that came after pruning
	Forget    int64  // when to close it, as the last programme with it says, Unix nanoseconds; 0: not said
	Closed    int64  // when it was closed, Unix nanoseconds; 0: open
	Pruned    bool   // later records go to the late list
	Swept     bool   // and nothing of it is left
}

// GateRow is what must outlive the process of what a device said.
type GateRow struct {
	Place string
	Hello int64 // when it last said hello, Unix nanoseconds, at most helloEvery old
}

// LateRow is one late record.
type LateRow struct {
	Event string
	Raw   []byte
}

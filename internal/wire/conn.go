package wire

import (
	"context"
	"errors"

	"admitone/internal/ticket"
)

// Errors of a Conn.
var (
	ErrNotConnected = errors.New("not connected")     // returned when there is no connection now
	ErrNoResponders = errors.New("nobody is there")   // returned at once when nobody listens to a request's subject
	ErrClosed       = errors.New("connection closed") // returned after Close
)

// Msg is a message that arrived. Respond is nil where no reply was asked for.
type Msg struct {
	Subject string
	Data    []byte
	Respond func(data []byte) error
}

// Conn is the network as the wire sees it: NATS, or the simulated one.
type Conn interface {
	// Publish sends at most once. It returns an error when there is no
	// connection; nothing is kept for later. A connection is never given its own
	// messages.
	Publish(subject string, data []byte) error

	// Request sends and waits for one reply, at most until ctx ends. It returns
	// ErrNotConnected or ErrNoResponders at once where that is known.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)

	// Subscribe calls h for each message, one at a time per subscription, until
	// the connection is closed; it survives reconnects. With a queue name, one
	// member of the queue group gets each message. "*" stands for one token.
	Subscribe(subject, queue string, h func(Msg)) error

	// Connected gives a channel that receives the state (true: connected) on
	// each change, starting with the present one. A slow reader sees the newest.
	Connected() <-chan bool
}

// Subjects. A gate publishes below gate.ID only, the ledger below
// ledger.PROCESS; the broker's permissions hold them to it, and so a message's
// subject proves its author.
//
//	gate.ID.spend      publish  a record, encoded
//	gate.ID.head       publish  Head
//	gate.ID.verdict    publish  a verdict line (JSON), for the operators' page only
//	gate.ID.ask        request  Ask -> AskReply           (queue group "ledger")
//	gate.ID.peek       request  Peek -> PeekReply         (queue group "ledger")
//	gate.ID.upload     request  Upload -> UploadReply     (queue group "ledger")
//	gate.ID.hello      request  Hello -> HelloReply       (queue group "ledger")
//	gate.ID.probe      request  nothing -> ProbeReply     (queue group "ledger")
//	gate.ID.fetch.TO   request  Fetch -> FetchReply       (TO: a device id, or "ledger" with the queue group)
//	ledger.P.spend     publish  a feed record, encoded
//	ledger.P.head      publish  Head
//	ledger.P.fetch.TO  request  Fetch -> FetchReply       (after a restore: its own feeds, from a gate)
//	broker.ID.gates    request  -> the signed gate list   (queue group "ledger")
//	ledger.P.gates     publish  the signed gate list, when it changed
//
// P is the part of the ledger's source after "ledger/".

// GateStore is what the wire needs of a gate's store. Every call is one
// transaction.
type GateStore interface {
	// Own gives the gate's own runs, earlier ones that were lost here and fetched
	// back among them: heads (Pos) and bases, oldest first; the last is the one
	// that is being written.
	Own() ([]StreamPos, error)

	// Cursors gives, per run of every other source, how far the records are here
	// without a gap.
	Cursors() ([]StreamPos, error)

	// Read gives records of a run that is held, after a position, without a gap,
	// and the run's base and head. From is the first one's position. An own
	// record that cannot be read any more is an empty slice.
	Read(s ticket.Stream, after uint64, limit, maxBytes int) (recs [][]byte, from, base, head uint64, err error)

	// Skip moves the cursor of a run up to base where it is below: its owner has
	// pruned the positions up to there, and they hold nothing of an open event.
	Skip(ctx context.Context, s ticket.Stream, base uint64) error

	// Tops gives, per run of a source, the highest position held, beyond a gap or
	// not.
	Tops(source ticket.Source) ([]StreamPos, error)

	// Beyond gives records of a run from the first one held after a position,
	// whatever is missing before it, and that one's position.
	Beyond(s ticket.Stream, after uint64, limit, maxBytes int) (recs [][]byte, from uint64, err error)

	// GiveUp ends an earlier own run: what is missing below the highest record
	// here, and up to position to, is nowhere any more, and Read gives it as empty.
	// It says how many positions those were.
	GiveUp(ctx context.Context, s ticket.Stream, to uint64) (given int, err error)

	// Devices gives the other gates that may hold records, but for those that were
	// given up.
	Devices() ([]ticket.Source, error)

	// Unreceipted gives this gate's own records of a unit that the ledger has not
	// receipted, oldest first.
	Unreceipted(u ticket.Unit) ([][]byte, error)

	// SetReceipts stores what the ledger says it has now of the own runs; it may
	// go down. It deletes nothing.
	SetReceipts(ctx context.Context, high []StreamPos) error

	// Receipts gives what SetReceipts stored.
	Receipts() ([]StreamPos, error)
}

// GateEvents is what the wire tells the gate.
type GateEvents interface {
	// Learn takes records of others, merges them durably and tells the loop. It
	// returns after the commit. Live is set for records that came as they
	// happened: they may reach a decision before they are durable here.
	Learn(ctx context.Context, live bool, arrived []ticket.Arrival) error

	// Answered gives the ledger's answer to an ask of this gate.
	Answered(a ticket.Answered)

	// LedgerTime gives the ledger's clock as a message brought it, and how long
	// the exchange took: half of it bounds the error.
	LedgerTime(unixNano int64, roundTrip int64)

	// LinkChanged is called after each change of what Link would return, but for
	// its PeerPatience.
	LinkChanged()

	// OwnRunAhead says that somebody holds one of this gate's own runs further
	// than this gate does, up to pos: the evidence of a lost or reverted store.
	// It is called once per run, and what is missing is being fetched.
	OwnRunAhead(s ticket.Stream, pos uint64)

	// CatchUpChanged is called after each change of what CaughtUp would return.
	CatchUpChanged(caughtUp bool)
}

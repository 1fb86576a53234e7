package wire

import (
	"context"

	"admitone/internal/ticket"
)

// LedgerService is the ledger behind the serving side of the wire. Its methods
// are called concurrently. An error means that it could not find out: the wire
// logs it and sends no reply, and the gate goes on without.
type LedgerService interface {
	// Ask answers about one claim of the asking gate, after its commit. It is an
	// error where a record that it carries is another's.
	Ask(ctx context.Context, from ticket.Source, m Ask) (AskReply, error)

	// Peek answers how a unit stands and writes nothing.
	Peek(ctx context.Context, from ticket.Source, m Peek) (PeekReply, error)

	// Upload takes records of one of the gate's runs, positions From, From+1, …,
	// and answers after its commit. A record that cannot be read, or is not of
	// that run and position, is set aside under its position and blocks nothing.
	Upload(ctx context.Context, from ticket.Source, m Upload) (UploadReply, error)

	// Hello takes what a gate has, and tells what the ledger has.
	Hello(ctx context.Context, from ticket.Source, m Hello) (HelloReply, error)

	// Read gives records of a run after a position, as FetchReply says.
	Read(ctx context.Context, s ticket.Stream, after uint64, limit, maxBytes int) (FetchReply, error)

	// Beyond gives records of a run from the first one held after a position,
	// whatever is missing before it. The reply's head is the last position that the
	// ledger was ever told of.
	Beyond(ctx context.Context, s ticket.Stream, after uint64, limit, maxBytes int) (FetchReply, error)

	// Learn takes records that this ledger lost and a gate still holds.
	Learn(ctx context.Context, arrived []ticket.Arrival) error

	// Spend takes a record as its gate published it, before any upload. Its
	// author has been checked.
	Spend(ctx context.Context, from ticket.Source, raw []byte) error

	// Heard takes a gate's head.
	Heard(from ticket.Source, h Head)

	// Verdict takes a verdict line (JSON) for the operators' page.
	Verdict(from ticket.Source, line []byte)

	// Feeds gives each record that this process wrote, after its commit.
	Feeds() <-chan ticket.Record

	// Own gives the heads of the runs that this process writes now: its feeds and
	// those of its HTTP callers.
	Own() []StreamPos

	// GateList gives the signed list of devices for brokers.
	GateList(ctx context.Context) ([]byte, error)
}

package wire

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/ticket"
)

// StreamPos is a position of one run of one source: a head, a cursor or a
// high-water, as the message says.
type StreamPos = ticket.StreamPos

// First is the claim that a refusal cites.
type First struct {
	_     struct{} `cbor:",toarray"`
	Claim ticket.ClaimID
	Place string
	Time  int64 // Unix nanoseconds
	State ticket.State
}

// Records travel as the bytes that ticket.Record.Encode gave, so that one that
// cannot be read is set aside raw and blocks nothing. An empty one stands for a
// record that its own gate cannot read any more.

// Head is published every 2 s and on connect, so that a lost last message shows.
type Head struct {
	Run   ticket.Run      `cbor:"1,keyasint"`
	Pos   uint64          `cbor:"2,keyasint"`
	Place string          `cbor:"3,keyasint"`
	Link  string          `cbor:"4,keyasint"` // "up", "suspect", "peers" or "alone"
	Clock ticket.Class    `cbor:"5,keyasint"`
	Mode  ticket.GateMode `cbor:"6,keyasint"`
	Time  int64           `cbor:"7,keyasint"`           // the sender's wall clock, Unix nanoseconds
	Note  string          `cbor:"8,keyasint,omitempty"` // what is wrong, in words for the operator

	// Source is set by a ledger process for the runs that it writes in others'
	// names ("http/CALLER"); otherwise the subject says whose head it is.
	Source ticket.Source `cbor:"9,keyasint,omitempty"`

	// Instance is set by a ledger process: random, new at each start. A gate that
	// sees a new one says hello, for the store may have come from a backup.
	Instance uint64 `cbor:"10,keyasint,omitempty"`
}

// Ask asks the ledger about one claim. It carries the claim's rev 0 and all of
// this gate's records of the unit that the ledger has not received.
type Ask struct {
	Claim   ticket.ClaimID `cbor:"1,keyasint"`
	Unit    ticket.Unit    `cbor:"2,keyasint"`
	Records [][]byte       `cbor:"3,keyasint"`
}

// AskReply is the ledger's stored answer. Its records of the unit are to be
// merged before deciding.
type AskReply struct {
	Claim   ticket.ClaimID `cbor:"1,keyasint"`
	Answer  ticket.Answer  `cbor:"2,keyasint"`
	First   *First         `cbor:"3,keyasint,omitempty"`
	Time    int64          `cbor:"4,keyasint"` // the ledger's clock, Unix nanoseconds
	Records [][]byte       `cbor:"5,keyasint,omitempty"`
}

// Peek asks how a unit stands and writes nothing.
type Peek struct {
	Unit ticket.Unit `cbor:"1,keyasint"`
}

// PeekReply answers a Peek. Reason is OK (free), InProgress, AlreadyUsed or Revoked.
type PeekReply struct {
	Reason  ticket.Reason `cbor:"1,keyasint"`
	First   *First        `cbor:"2,keyasint,omitempty"`
	Time    int64         `cbor:"3,keyasint"`
	Records [][]byte      `cbor:"4,keyasint,omitempty"`
}

// Upload hands records of one run to the ledger: positions From, From+1, …
type Upload struct {
	Run     ticket.Run `cbor:"1,keyasint"`
	From    uint64     `cbor:"2,keyasint"`
	Records [][]byte   `cbor:"3,keyasint"`
}

// UploadReply is the ledger's receipt, sent after its commit.
type UploadReply struct {
	High     []StreamPos `cbor:"1,keyasint"`           // the uploader's runs as the ledger has them now
	SetAside []uint64    `cbor:"2,keyasint,omitempty"` // positions of this upload that it could not read
	Time     int64       `cbor:"3,keyasint"`
}

// Hello is sent on connect and every 30 s.
type Hello struct {
	Place   string      `cbor:"1,keyasint"`
	Runs    []StreamPos `cbor:"2,keyasint"` // one's own runs: heads and bases
	Cursors []StreamPos `cbor:"3,keyasint"` // how far one has everybody else's
}

// HelloReply tells what the ledger has now: that, not an earlier receipt, is
// what counts.
type HelloReply struct {
	High  []StreamPos `cbor:"1,keyasint"` // of the caller's runs
	Heads []StreamPos `cbor:"2,keyasint"` // everybody else's runs, the ledger's own feeds among them
	Time  int64       `cbor:"3,keyasint"`
	Named []StreamPos `cbor:"4,keyasint,omitempty"` // of the caller's runs: the last position told of, where that is beyond the high-water
}

// ProbeReply answers a probe, which asks for nothing but an answer: a ledger
// whose store hangs gives none.
type ProbeReply struct {
	Time int64 `cbor:"1,keyasint"` // the ledger's clock, Unix nanoseconds
}

// Fetch asks an owner, a peer or the ledger for records of a run after a
// position. With Run 0 the reply lists the runs of the source that are held, no
// source meaning all; with Limit 0 it lists none, and only its delay is of use.
type Fetch struct {
	Source ticket.Source `cbor:"1,keyasint"`
	Run    ticket.Run    `cbor:"2,keyasint"`
	After  uint64        `cbor:"3,keyasint"`
	Limit  int           `cbor:"4,keyasint"`

	// Beyond asks for the first records that are held after After, whatever is
	// missing before them; with Run 0, for the highest position held of each run.
	Beyond bool `cbor:"5,keyasint,omitempty"`
}

// FetchReply gives the records at After+1, After+2, … without a gap; where After
// is below Base they start at Base+1. Where they were asked for beyond gaps, they
// start at From, and the ledger's Head is the last position that it was told of.
type FetchReply struct {
	Base    uint64      `cbor:"1,keyasint"`
	Head    uint64      `cbor:"2,keyasint"`
	From    uint64      `cbor:"3,keyasint"` // the position of the first record
	Records [][]byte    `cbor:"4,keyasint,omitempty"`
	Held    []StreamPos `cbor:"5,keyasint,omitempty"`
}

// Limits of messages.
const (
	MaxMessage     = 1 << 20 // bytes; the broker's max_payload
	LiveUploadMax  = 64      // records in one upload while there is live traffic
	BulkUploadMax  = 2048    // records in one upload otherwise
	FetchMax       = 512     // records in one fetch reply
	maxBatchBytes  = 768 << 10
	maxStreamsList = 20000
)

var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		MaxNestedLevels: 8, MaxArrayElements: maxStreamsList, MaxMapPairs: 64,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: only a changed library could reach this
	}
	return v
}

func encode(v any) ([]byte, error) {
	b, err := encMode.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if len(b) > MaxMessage {
		return nil, fmt.Errorf("encode message: %d bytes, at most %d", len(b), MaxMessage)
	}
	return b, nil
}

func decode(b []byte, v any) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("decode message: %d bytes, at most %d", len(b), MaxMessage)
	}
	if err := decMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	return nil
}

package ledger

import "admitone/internal/ticket"

// The requests and answers of gates, as protocol.md's messages give them. Package
// wire has the same with their encoding; the adapter in cmd/ledgerd copies fields.

// Ask asks about one claim. Records carries the claim's rev 0 and all of the
// gate's records of the unit that the ledger has not receipted, encoded.
type Ask struct {
	Claim   ticket.ClaimID
	Unit    ticket.Unit
	Records [][]byte
}

// First is the claim that an answer cites.
type First struct {
	Claim ticket.ClaimID `cbor:"1,keyasint"`
	Place string         `cbor:"2,keyasint"`
	Time  int64          `cbor:"3,keyasint"` // when it was claimed, Unix nanoseconds
	State ticket.State   `cbor:"4,keyasint"`
}

// AskReply is the stored answer, with what the gate must merge before deciding.
type AskReply struct {
	Claim   ticket.ClaimID
	Answer  ticket.Answer
	First   *First
	Time    int64 // the ledger's clock, Unix nanoseconds
	Records [][]byte
}

// Peek asks how a unit stands and writes nothing.
type Peek struct{ Unit ticket.Unit }

// PeekReply answers a Peek: OK (free), InProgress, AlreadyUsed or Revoked.
type PeekReply struct {
	Reason  ticket.Reason
	First   *First
	Time    int64
	Records [][]byte
}

// Upload hands over the records at positions From, From+1, … of one run.
type Upload struct {
	Run     ticket.Run
	From    uint64
	Records [][]byte
}

// UploadReply is the receipt: how far the ledger has the uploader's runs now.
type UploadReply struct {
	High     []ticket.StreamPos
	SetAside []uint64 // positions of this upload that could not be read
	Time     int64
}

// Hello names a gate's runs (heads and bases) and how far it has the others'.
type Hello struct {
	Place   string
	Runs    []ticket.StreamPos
	Cursors []ticket.StreamPos
}

// HelloReply tells what the ledger has now, of the caller's runs and of others'.
type HelloReply struct {
	High  []ticket.StreamPos
	Heads []ticket.StreamPos
	Time  int64
	Named []ticket.StreamPos // of the caller's runs: the last position told of, where that is beyond the high-water
}

// FetchReply gives records of a run from position From without a gap, or, where
// no run was named, the runs held.
type FetchReply struct {
	Base    uint64
	Head    uint64
	From    uint64
	Records [][]byte
	Held    []ticket.StreamPos
}

// Head is what a gate publishes about itself every 2 s.
type Head struct {
	Run   ticket.Run
	Pos   uint64
	Place string
	Link  string
	Clock ticket.Class
	Mode  ticket.GateMode
	Time  int64 // the gate's wall clock, Unix nanoseconds
	Note  string
}

func firstOf(c ticket.Claim) *First {
	return &First{Claim: c.ID, Place: c.Place, Time: c.Claimed.Wall, State: c.State}
}

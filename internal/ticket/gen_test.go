package ticket

import (
	"time"

	"pgregory.net/rapid"
)

// Generators of the domain's values. They draw from few sources, times and
// units, so that equal and crossing ones are common.

func drawID(t *rapid.T) (id ID) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), len(id), len(id)).Draw(t, "id"))
	return id
}

func drawSource(t *rapid.T) Source {
	return rapid.SampledFrom([]Source{"gate-a", "gate-b", "ledger/1", "http/shop"}).Draw(t, "source")
}

func drawClaimID(t *rapid.T) ClaimID {
	return ClaimID{
		Gate: drawSource(t),
		Run:  Run(rapid.Uint64Range(0, 2).Draw(t, "run")),
		Pos:  rapid.Uint64Range(1, 3).Draw(t, "pos"),
	}
}

func drawUnit(t *rapid.T) Unit {
	return Unit{
		Event:  rapid.SampledFrom([]string{"gala", "derby"}).Draw(t, "event"),
		Format: rapid.SampledFrom([]Format{FormatA1, FormatCode}).Draw(t, "format"),
		Ticket: drawID(t),
		Entry:  rapid.Uint32().Draw(t, "entry"),
	}
}

func drawStamp(t *rapid.T) Stamp {
	return Stamp{
		Wall:  rapid.Int64Range(0, 4).Draw(t, "wall") * int64(time.Second),
		Boot:  BootID(drawID(t)),
		Up:    rapid.Int64Range(0, 1<<40).Draw(t, "up"),
		Class: Class(rapid.IntRange(0, 1).Draw(t, "class")),
		Bound: rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "bound"),
	}
}

func drawRefs(t *rapid.T) []Ref {
	var refs []Ref
	for range rapid.IntRange(0, 2).Draw(t, "refs") {
		refs = append(refs, Ref{Claim: drawClaimID(t), Rev: rapid.Uint32Range(0, 2).Draw(t, "after_rev")})
	}
	return refs
}

func drawClaim(t *rapid.T) Claim {
	return Claim{
		ID: drawClaimID(t), Rev: rapid.Uint32Range(0, 2).Draw(t, "rev"), Unit: drawUnit(t),
		State:   State(rapid.IntRange(int(Pending), int(Admitted)).Draw(t, "state")),
		Claimed: drawStamp(t),
		At:      rapid.Int64Range(0, 1<<60).Draw(t, "at"),
		Lane:    rapid.SampledFrom([]string{"", "1"}).Draw(t, "lane"),
		Place:   rapid.SampledFrom([]string{"North", "Süd 2"}).Draw(t, "place"),
		Lease:   time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "lease")),
		Alone:   rapid.Bool().Draw(t, "alone"),
		After:   drawRefs(t),
		Reason:  rapid.SampledFrom([]Reason{"", OK, Free, AlreadyUsed}).Draw(t, "reason"),
	}
}

func drawFeed(t *rapid.T) *Feed {
	f := &Feed{
		Subject: "subject", Version: rapid.Uint64Range(1, 9).Draw(t, "version"),
		At: rapid.Int64().Draw(t, "at"),
	}
	switch rapid.IntRange(0, 6).Draw(t, "feed") {
	case 0:
		f.Revoke = &FeedRevoke{Format: FormatA1, Ticket: drawID(t), Revoked: rapid.Bool().Draw(t, "revoked")}
	case 1:
		f.Release = &FeedRelease{Claim: drawClaimID(t), Rev: 1, Unit: drawUnit(t)}
	case 2:
		f.Distrust = &FeedDistrust{Device: drawSource(t), Since: rapid.Int64().Draw(t, "since"), Reason: "swapped"}
	case 3:
		f.Programme = &FeedProgramme{Signed: rapid.SliceOf(rapid.Byte()).Draw(t, "signed")}
	case 4:
		n := rapid.IntRange(0, 3).Draw(t, "hashes") * len(ID{})
		f.Codes = &FeedCodes{Event: "gala", Chunk: 0, Chunks: 1, Hashes: make([]byte, n)}
	case 5:
		f.Closed = &FeedClosed{Event: "gala"}
	case 6:
		f.Gate = &FeedGate{Device: drawSource(t), Place: "North", Key: "UABC", Role: "gate", State: "enrolled"}
	}
	return f
}

func drawEvent(t *rapid.T) *Event {
	e := &Event{
		Type:  rapid.SampledFrom([]EventType{EventTailgate, EventMode, EventFault}).Draw(t, "type"),
		Stamp: drawStamp(t), Place: "North", Detail: rapid.StringN(0, 20, 80).Draw(t, "detail"),
	}
	if rapid.Bool().Draw(t, "of_claim") {
		id := drawClaimID(t)
		e.Claim = &id
	}
	return e
}

func drawRecord(t *rapid.T) Record {
	r := Record{
		Source: drawSource(t), Run: Run(rapid.Uint64().Draw(t, "run")), Pos: rapid.Uint64Range(1, 1<<63).Draw(t, "pos"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		c := drawClaim(t)
		c.ID.Gate = r.Source
		switch {
		case c.Rev == 0:
			c.ID.Run, c.ID.Pos = r.Run, r.Pos
		case c.ID.Run == r.Run && c.ID.Pos >= r.Pos:
			r.Pos = c.ID.Pos + 1
		}
		r.Claim = &c
	case 1:
		r.Event = drawEvent(t)
	case 2:
		r.Feed = drawFeed(t)
	}
	return r
}

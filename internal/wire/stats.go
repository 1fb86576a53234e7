package wire

import "sync/atomic"

type counters struct {
	refused, unreadable, liveDropped, outDropped, asksDropped  atomic.Uint64
	asked, repeated, unanswered, uploads, uploaded, setAside   atomic.Uint64
	fetches, fetched, learned, served, learnFailed, fetchEmpty atomic.Uint64
}

// GateStats counts what happened since Run began.
type GateStats struct {
	Refused     uint64 `json:"refused"`      // messages whose author is not their record's source
	Unreadable  uint64 `json:"unreadable"`   // records that could not be read
	OutDropped  uint64 `json:"out_dropped"`  // messages not published: no connection, or too many at once
	LiveDropped uint64 `json:"live_dropped"` // live records that came too fast; they are fetched
	Asked       uint64 `json:"asked"`        // claims asked about
	Repeated    uint64 `json:"repeated"`     // asks sent a second time
	Unanswered  uint64 `json:"unanswered"`   // claims the ledger did not answer in time
	AsksDropped uint64 `json:"asks_dropped"` // asks not sent: too many at once
	Uploads     uint64 `json:"uploads"`      // uploads receipted
	Uploaded    uint64 `json:"uploaded"`     // records in them
	SetAside    uint64 `json:"set_aside"`    // of these, those the ledger could not read
	Learned     uint64 `json:"learned"`      // live records learned
	Fetches     uint64 `json:"fetches"`      // fetches that gave records
	Fetched     uint64 `json:"fetched"`      // records in them
	FetchEmpty  uint64 `json:"fetch_empty"`  // fetches that gave none
	Served      uint64 `json:"served"`       // fetches answered
	LearnFailed uint64 `json:"learn_failed"` // times that records could not be stored here
}

// Stats gives the counts.
func (g *Gate) Stats() GateStats {
	c := &g.count
	return GateStats{
		Refused: c.refused.Load(), Unreadable: c.unreadable.Load(), OutDropped: c.outDropped.Load(),
		LiveDropped: c.liveDropped.Load(), Asked: c.asked.Load(), Repeated: c.repeated.Load(),
		Unanswered: c.unanswered.Load(), AsksDropped: c.asksDropped.Load(), Uploads: c.uploads.Load(),
		Uploaded: c.uploaded.Load(), SetAside: c.setAside.Load(), Learned: c.learned.Load(),
		Fetches: c.fetches.Load(), Fetched: c.fetched.Load(), FetchEmpty: c.fetchEmpty.Load(),
		Served: c.served.Load(), LearnFailed: c.learnFailed.Load(),
	}
}

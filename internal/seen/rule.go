package seen

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// Check refuses a request that no row of the policy table stands for.
func (p Policy) Check(r Request) error {
	if p.Endpoint != r.Key.Endpoint {
		return fmt.Errorf("claim key: policy of endpoint %q, key of %q", p.Endpoint, r.Key.Endpoint)
	}
	if p.OnRepeat != Echo && p.OnRepeat != Refuse {
		return fmt.Errorf("claim key: endpoint %q answers a repeat with %q, which is neither echo nor refuse", p.Endpoint, p.OnRepeat)
	}
	return nil
}

// Answer is what a request gets that finds a row stored. It is the one branch
// between an idempotency key and a ticket. A mismatch comes first: it is an error
// of the client whatever became of the first request.
func (p Policy) Answer(row Row, r Request) Answer {
	a := Answer{Outcome: Refused, Row: row}
	switch {
	case len(row.Fingerprint) > 0 && len(r.Fingerprint) > 0 && !bytes.Equal(row.Fingerprint, r.Fingerprint):
		a.Outcome = Mismatch
	case !row.Done:
		a.Outcome = InProgress
	case p.OnRepeat == Echo:
		a.Outcome = Echoed
	}
	return a
}

// Row is the row that a request makes.
func (p Policy) Row(r Request) Row {
	until := r.Until
	if until.IsZero() && p.Remember != 0 {
		until = r.At.Add(p.Remember)
	}
	return Row{
		Key:         r.Key,
		FirstSeen:   stored(r.At),
		Place:       r.Place,
		Holder:      r.Holder,
		Fingerprint: slices.Clone(r.Fingerprint),
		Until:       stored(until),
	}
}

// Due says whether a row's time is over at now.
func (r Row) Due(now time.Time) bool {
	return !r.Until.IsZero() && !r.Until.After(now)
}

// stored is a time as it comes back from the table: UTC, no monotonic reading.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

package kvseen

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"admitone/internal/seen"
)

// check refuses a request that no row of the policy table stands for.
func check(p seen.Policy, r seen.Request) error {
	if p.Endpoint != r.Key.Endpoint {
		return fmt.Errorf("claim key: policy of endpoint %q, key of %q", p.Endpoint, r.Key.Endpoint)
	}
	if p.OnRepeat != seen.Echo && p.OnRepeat != seen.Refuse {
		return fmt.Errorf("claim key: endpoint %q answers a repeat with %q, which is neither echo nor refuse", p.Endpoint, p.OnRepeat)
	}
	return nil
}

// repeat is the one branch between an idempotency key and a ticket. A mismatch
// comes first: it is an error of the client whatever became of the first request.
func repeat(p seen.Policy, row seen.Row, r seen.Request) seen.Outcome {
	switch {
	case len(row.Fingerprint) > 0 && len(r.Fingerprint) > 0 && !bytes.Equal(row.Fingerprint, r.Fingerprint):
		return seen.Mismatch
	case !row.Done:
		return seen.InProgress
	case p.OnRepeat == seen.Echo:
		return seen.Echoed
	}
	return seen.Refused
}

func newRow(p seen.Policy, r seen.Request) seen.Row {
	until := r.Until
	if until.IsZero() && p.Remember != 0 {
		until = r.At.Add(p.Remember)
	}
	return seen.Row{
		Key:         r.Key,
		FirstSeen:   stored(r.At),
		Place:       r.Place,
		Holder:      r.Holder,
		Fingerprint: slices.Clone(r.Fingerprint),
		Until:       stored(until),
	}
}

// due says whether a row's time is over at now.
func due(row seen.Row, now time.Time) bool {
	return !row.Until.IsZero() && !row.Until.After(now)
}

// stored is a time as it comes back from the table: UTC, no monotonic reading.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

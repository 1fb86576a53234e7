package crashtest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"admitone/internal/ticket"
)

// Finding is what check says of a state; no Problem: it is as it must be.
type Finding struct {
	State   int
	Problem string
}

// Announced gives what was announced before an event.
func Announced(rec Recording, cut int) (out []Note) {
	for _, e := range rec.Events[:cut] {
		if e.Kind == Said {
			out = append(out, *e.Note)
		}
	}
	return out
}

// Of leaves what happened below a folder, and turns what a gate wrote elsewhere into
// what it is: announcements. Those are the lines of its verdicts and its results, and
// of its simulated turnstile's relay, which moves for the claim that was marked last.
func Of(rec Recording, below string) Recording {
	events, names, marked := slices.Clone(rec.Events), map[int]string{}, NoClaim
	for i, e := range events {
		switch e.Kind {
		case Create, Rename:
			names[e.File] = e.Path
		case Unlink, FlushDir, Said:
			continue
		}
		if filepath.Dir(names[e.File]) == below {
			continue
		}
		events[i] = Event{}
		if e.Kind != Write {
			continue
		}
		n, line := Note{}, bytes.TrimSpace(e.Data)
		switch filepath.Base(names[e.File]) {
		case "verdicts.jsonl":
			n.Admit = admitted(line)
		case "results.jsonl":
			n.Result = result(line)
		case "fired":
			_, marked, _ = strings.Cut(string(line), " ")
		case "turnstile.jsonl":
			if moved(line) {
				n.Relay, marked = marked, NoClaim
			}
		}
		if !n.Admit.IsZero() || n.Result != nil || n.Relay != "" {
			events[i] = Event{Kind: Said, Note: &n}
		}
	}
	return Recording{Device: rec.Device, Events: events}
}

func admitted(line []byte) (id ticket.ClaimID) {
	var v ticket.Verdict
	if json.Unmarshal(line, &v) == nil && v.Verdict == ticket.Admit {
		id, _ = ticket.ParseClaimID(v.Claim) // a claim that is none is found by others
	}
	return id
}

func result(line []byte) *Result {
	var r ticket.Result
	if json.Unmarshal(line, &r) != nil {
		return nil
	}
	id, err := ticket.ParseClaimID(r.Claim)
	if err != nil {
		return nil
	}
	return &Result{id, r.Result}
}

// moved reports whether the relay became active.
func moved(line []byte) bool {
	var e struct {
		Line   string `json:"line"`
		Active bool   `json:"active"`
	}
	return json.Unmarshal(line, &e) == nil && e.Line == "relay" && e.Active
}

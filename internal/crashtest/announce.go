package crashtest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"

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

// Of leaves what happened below a folder, and turns the lines that a gate wrote to
// its verdicts and results into what they are: announcements.
func Of(rec Recording, below string) Recording {
	events, names := slices.Clone(rec.Events), map[int]string{}
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
		if n := noteOf(filepath.Base(names[e.File]), e.Data); e.Kind == Write && n != nil {
			events[i] = Event{Kind: Said, Note: n}
		}
	}
	return Recording{Device: rec.Device, Events: events}
}

func noteOf(file string, line []byte) *Note {
	switch file {
	case "verdicts.jsonl":
		var v ticket.Verdict
		if json.Unmarshal(bytes.TrimSpace(line), &v) != nil || v.Verdict != ticket.Admit {
			return nil
		}
		if id, err := ticket.ParseClaimID(v.Claim); err == nil {
			return &Note{Admit: id}
		}
	case "results.jsonl":
		var r ticket.Result
		if json.Unmarshal(bytes.TrimSpace(line), &r) != nil {
			return nil
		}
		if id, err := ticket.ParseClaimID(r.Claim); err == nil {
			return &Note{Result: &Result{id, r.Result}}
		}
	}
	return nil
}

package ticket

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits of a programme; with them it stays far below MaxProgramme.
const (
	maxEvents = 256 // events of a programme
	maxList   = 256 // sessions, places, keys … of an event
	maxLabel  = 64  // bytes of an event's or a place's name
)

// problems collects what is wrong, each with the path of its field.
type problems struct{ errs []error }

func (p *problems) add(path, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}

func (p *problems) wrong(path string, err error) {
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", path, err))
	}
}

// fresh adds a problem where the value stands in an earlier entry already.
func (p *problems) fresh(path, value string, seen map[string]bool) {
	if seen[value] {
		p.add(path, "%q is there twice, want each once", shorten(value))
	}
	seen[value] = true
}

// few adds a problem where a list has too many entries.
func (p *problems) few(path string, n, most int) {
	if n > most {
		p.add(path, "%d entries, want at most %d", n, most)
	}
}

// Validate returns every problem of the programme at once (errors.Join), each as
// "path: what is wrong, what would be right", such as
// "events[0].close: not after open, …".
func (p Programme) Validate() error {
	var out problems
	if p.Version == 0 {
		out.add("version", "0, want 1 or more, and more than that of the programme before")
	}
	out.few("events", len(p.Events), maxEvents)
	ids := map[string]bool{}
	for i, e := range p.Events {
		path := fmt.Sprintf("events[%d]", i)
		out.wrong(path+".id", CheckName(e.ID))
		out.fresh(path+".id", e.ID, ids)
		if e.Name != "" {
			out.wrong(path+".name", checkLabel(e.Name, maxLabel))
		}
		out.times(path, e)
		out.sessions(path, e)
		out.places(path, e)
		out.nameList(path+".products", e.Products)
		out.formats(path, e)
	}
	return errors.Join(out.errs...)
}

func (p *problems) times(path string, e ProgrammeEvent) {
	p.moment(path+".open", e.Open)
	p.moment(path+".close", e.Close)
	p.moment(path+".forget", e.Forget)
	if e.Open.IsZero() || e.Close.IsZero() || e.Forget.IsZero() {
		return
	}
	if !e.Open.Before(e.Close) {
		p.add(path+".close", "%s is not after open, want the time of the last admission", e.Close.Format(time.RFC3339))
	}
	if e.Forget.Before(e.Close) {
		p.add(path+".forget", "%s is before close, want a time from which no gate needs the event's tickets", e.Forget.Format(time.RFC3339))
	}
}

// moment checks that a time is one that travels unchanged: as whole seconds.
func (p *problems) moment(path string, t time.Time) {
	switch {
	case t.IsZero():
		p.add(path, "not set, want a time such as 2030-06-01T18:00:00Z")
	case t.Nanosecond() != 0:
		p.add(path, "%s has a fraction, want whole seconds", t.Format(time.RFC3339Nano))
	case t.Unix() <= 0 || t.UTC().Year() > 9999:
		p.add(path, "%s is out of range, want 1970 to 9999", t.Format(time.RFC3339))
	}
}

func (p *problems) sessions(path string, e ProgrammeEvent) {
	p.few(path+".sessions", len(e.Sessions), maxList)
	ids := map[string]bool{}
	for i, s := range e.Sessions {
		at := fmt.Sprintf("%s.sessions[%d]", path, i)
		p.wrong(at+".id", CheckName(s.ID))
		p.fresh(at+".id", s.ID, ids)
		p.moment(at+".from", s.From)
		p.moment(at+".to", s.To)
		switch {
		case s.From.IsZero() || s.To.IsZero():
		case !s.From.Before(s.To):
			p.add(at+".to", "%s is not after from, want a later time", s.To.Format(time.RFC3339))
		case !s.From.Before(e.Close) || !e.Open.Before(s.To):
			p.add(at+".from", "the session is never on while the event is open, want times between open and close")
		}
	}
}

func (p *problems) places(path string, e ProgrammeEvent) {
	p.few(path+".places", len(e.Places), maxList)
	seen := map[string]bool{}
	for i, r := range e.Places {
		at := fmt.Sprintf("%s.places[%d]", path, i)
		p.wrong(at+".place", checkLabel(r.Place, maxLabel))
		p.fresh(at+".place", r.Place, seen)
		p.nameList(at+".zones", r.Zones)
		p.nameList(at+".products", r.Products)
		for j, product := range r.Products {
			if !allows(e.Products, product) {
				p.add(fmt.Sprintf("%s.products[%d]", at, j), "%q is none of the event's products", shorten(product))
			}
		}
	}
}

func (p *problems) nameList(path string, names []string) {
	p.few(path, len(names), maxList)
	seen := map[string]bool{}
	for i, n := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		p.wrong(at, CheckName(n))
		p.fresh(at, n, seen)
	}
}

func (p *problems) formats(path string, e ProgrammeEvent) {
	if len(e.Formats) == 0 {
		p.add(path+".formats", `empty, want "a1", "code" or both`)
	}
	seen := map[string]bool{}
	for i, f := range e.Formats {
		at := fmt.Sprintf("%s.formats[%d]", path, i)
		if f != nameA1 && f != nameCode {
			p.add(at, `%q is no format, want "a1" or "code"`, shorten(f))
		}
		p.fresh(at, f, seen)
	}
	switch a1 := slices.Contains(e.Formats, nameA1); {
	case a1 && len(e.Keys) == 0:
		p.add(path+".keys", "empty, want the public key of each signer of a1 tickets")
	case !a1 && len(e.Keys) > 0:
		p.add(path+".keys", `given, but formats does not have "a1"`)
	}
	switch code := slices.Contains(e.Formats, nameCode); {
	case code && !isHex(e.CodeKey, 32):
		p.add(path+".code_key", "want 64 lower-case hex digits, the secret that codes are hashed with")
	case !code && e.CodeKey != "":
		p.add(path+".code_key", `given, but formats does not have "code"`)
	}
	p.keys(path, e)
}

func (p *problems) keys(path string, e ProgrammeEvent) {
	p.few(path+".keys", len(e.Keys), maxList)
	seen := map[string]bool{}
	for i, k := range e.Keys {
		at := fmt.Sprintf("%s.keys[%d]", path, i)
		p.fresh(at+".id", k.ID, seen)
		if !isHex(k.Public, 32) {
			p.add(at+".public", "want 64 lower-case hex digits, an Ed25519 public key")
			continue
		}
		public, _ := hex.DecodeString(k.Public)
		if want := KeyID(public); k.ID != want {
			p.add(at+".id", "%q is not this public key's id, want %q", shorten(k.ID), want)
		}
	}
}

// isHex reports whether s is n bytes in lower-case hex digits.
func isHex(s string, n int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == n && hex.EncodeToString(b) == s
}

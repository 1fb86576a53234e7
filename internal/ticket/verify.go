package ticket

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"
)

// The names of the formats in programmes.
const (
	nameA1   = "a1"
	nameCode = "code"
)

// Verifier reads ticket texts against one programme. It is never changed, needs
// no network, and may be used by several goroutines; a new programme or code
// list makes a new one.
type Verifier struct {
	programme Programme
	demo      bool
	triesA1   bool
	signed    map[string]map[keyTag]verifierKey // by event; only events with format a1
	listed    []verifierList                    // events with format code, in the programme's order
}

type verifierKey struct {
	public ed25519.PublicKey
	demo   bool
}

type verifierList struct {
	event string
	key   []byte
	codes CodeList
}

// NewVerifier makes a verifier of a valid programme and the code lists that have
// arrived, by event; a missing list is an empty one. Keys marked demo count only
// where demo is set.
func NewVerifier(p Programme, codes map[string]CodeList, demo bool) (*Verifier, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("use programme: %w", err)
	}
	v := &Verifier{programme: p, demo: demo, signed: make(map[string]map[keyTag]verifierKey)}
	for _, e := range p.Events {
		if slices.Contains(e.Formats, nameA1) {
			v.signed[e.ID] = keysOf(e)
		}
		if slices.Contains(e.Formats, nameCode) {
			key, err := hex.DecodeString(e.CodeKey)
			if err != nil {
				return nil, fmt.Errorf("use programme: code key of %s: %w", e.ID, err)
			}
			v.listed = append(v.listed, verifierList{event: e.ID, key: key, codes: codes[e.ID]})
		}
	}
	v.triesA1 = len(v.signed) > 0 || len(v.listed) == 0
	return v, nil
}

func keysOf(e ProgrammeEvent) map[keyTag]verifierKey {
	keys := make(map[keyTag]verifierKey, len(e.Keys))
	for _, k := range e.Keys {
		if public, err := hex.DecodeString(k.Public); err == nil {
			keys[tagOf(public)] = verifierKey{public: public, demo: k.Demo}
		}
	}
	return keys
}

// Read gives the ticket that a text is. The reason is
//   - OK: verified;
//   - Invalid: no format of the programme accepts the text, whether it is cut
//     off, spelled in another way, changed or something else entirely;
//   - Unknown: it is an a1 ticket whose event, or whose key at that event, the
//     programme does not have (a demo key counts as not there unless demo is
//     set), or code is the only format and the text is on no list.
//
// Only with OK is the ticket set. Where several events list the same code, it is
// that of the first; Check knows better.
func (v *Verifier) Read(text string) (Ticket, Reason) {
	all, reason := v.candidates(text)
	if reason != OK {
		return Ticket{}, reason
	}
	return all[0], OK
}

// Check reads a text and judges the ticket. A code may be on the lists of
// several events, as for every day of a festival: then the event that admits it
// now is taken, or else the one with the reason that says most. The ticket is
// set wherever a format accepted the text.
func (v *Verifier) Check(text string, at Where) (Ticket, Reason) {
	all, reason := v.candidates(text)
	if reason != OK {
		return Ticket{}, reason
	}
	best, bestReason := all[0], v.programme.Judge(all[0], at)
	for _, t := range all[1:] {
		if r := v.programme.Judge(t, at); telling(r) > telling(bestReason) {
			best, bestReason = t, r
		}
	}
	return best, bestReason
}

// telling ranks the reasons of one code at several events.
func telling(r Reason) int {
	switch r {
	case OK:
		return 2
	case WrongEvent, Closed:
		return 0
	}
	return 1
}

// candidates gives the tickets that a text can be: one a1 ticket, or one code
// for each event that lists it; at least one with OK.
func (v *Verifier) candidates(text string) ([]Ticket, Reason) {
	reason := Invalid
	if v.triesA1 {
		var t Ticket
		if t, reason = v.readSigned(text); reason == OK {
			return []Ticket{t}, OK
		}
	}
	if len(v.listed) == 0 || CheckCode(text) != nil {
		return nil, reason
	}
	if found := v.readListed(text); len(found) > 0 {
		return found, OK
	}
	if !v.triesA1 {
		return nil, Unknown
	}
	return nil, reason
}

func (v *Verifier) readSigned(text string) (Ticket, Reason) {
	t, s, err := readA1(text)
	if err != nil {
		return Ticket{}, Invalid
	}
	key, ok := v.signed[t.Event][s.key]
	if !ok || key.demo && !v.demo {
		return Ticket{}, Unknown
	}
	if s.verify(key.public) != nil {
		return Ticket{}, Invalid
	}
	return t, OK
}

func (v *Verifier) readListed(text string) []Ticket {
	var found []Ticket
	for _, l := range v.listed {
		if id := CodeHash(l.key, text); l.codes.Has(id) {
			found = append(found, Ticket{Format: FormatCode, ID: id, Event: l.event})
		}
	}
	return found
}

package ledger

import (
	"fmt"
	"maps"
	"slices"

	"admitone/internal/ticket"
)

// knownVerifier is the verifier of one programme with the code lists that belong
// to it.
type knownVerifier struct {
	at    SubjectRow
	codes map[string]uint64 // the version of each event's list
	v     *ticket.Verifier
}

// verifier gives what reads ticket texts by the programme that holds, made once
// for each programme and set of code lists; nil where there is no programme.
func (t *txn) verifier() (*ticket.Verifier, error) {
	p, err := t.programme()
	if err != nil || p.prog.Version == 0 {
		return nil, err
	}
	codes := map[string]uint64{}
	for _, e := range p.prog.Events {
		if !slices.Contains(e.Formats, ticket.FormatCode.String()) {
			continue
		}
		at, _, err := t.Subject(ticket.CodesSubject(e.ID, 0)) // all chunks of a list have one version
		if err != nil {
			return nil, err
		}
		codes[e.ID] = at.Version
	}
	if k := t.l.verifies.Load(); k != nil && k.at == p.at && maps.Equal(k.codes, codes) {
		return k.v, nil
	}
	lists := map[string]ticket.CodeList{}
	for event := range codes {
		if lists[event], err = t.codes(event); err != nil {
			return nil, err
		}
	}
	v, err := ticket.NewVerifier(p.prog, lists, t.l.opt.Demo)
	if err != nil {
		return nil, fmt.Errorf("read tickets: %w", err)
	}
	if len(t.written) == 0 { // what this very transaction wrote may yet be undone
		t.l.verifies.Store(&knownVerifier{at: p.at, codes: codes, v: v})
	}
	return v, nil
}

// codes gives an event's list of code hashes as it was pushed last, empty where
// none was.
func (t *txn) codes(event string) (ticket.CodeList, error) {
	var chunks []ticket.FeedCodes
	for n := 1; len(chunks) < n; {
		f, err := t.feedOf(ticket.CodesSubject(event, len(chunks)))
		if err != nil {
			return ticket.CodeList{}, err
		}
		if f == nil || f.Codes == nil {
			break
		}
		chunks = append(chunks, *f.Codes)
		n = chunks[0].Chunks // what a longer list had beyond is still there, and of no use
	}
	list, _, err := ticket.AssembleCodes(chunks)
	return list, err
}

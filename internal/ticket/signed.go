package ticket

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"time"
)

// MaxProgramme is the most bytes of a signed programme: it travels in one record.
const MaxProgramme = 512 << 10

// programmeKind keeps a programme from being taken for another signed document.
const programmeKind = "application/vnd.admitone.programme+cbor"

// SignProgramme gives the programme as it travels: a COSE_Sign1 over its
// deterministic CBOR, times as Unix seconds. The same programme and key give the
// same bytes. It is an error when Validate finds a problem.
func SignProgramme(p Programme, priv ed25519.PrivateKey) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("sign programme: %w", err)
	}
	payload, err := encMode.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode programme: %w", err)
	}
	signed, err := SignDocument(programmeKind, payload, priv)
	if err != nil {
		return nil, fmt.Errorf("sign programme: %w", err)
	}
	if len(signed) > MaxProgramme {
		return nil, fmt.Errorf("sign programme: %d bytes, at most %d: take out events that are over", len(signed), MaxProgramme)
	}
	return signed, nil
}

// OpenProgramme reads what SignProgramme wrote: only that spelling, only signed
// by this key, and only a valid programme. Its times are in UTC.
func OpenProgramme(signed []byte, pub ed25519.PublicKey) (Programme, error) {
	if len(signed) > MaxProgramme {
		return Programme{}, fmt.Errorf("open programme: %d bytes, at most %d", len(signed), MaxProgramme)
	}
	payload, err := OpenDocument(programmeKind, signed, pub)
	if err != nil {
		return Programme{}, fmt.Errorf("open programme: %w", err)
	}
	var p Programme
	if err := decMode.Unmarshal(payload, &p); err != nil {
		return Programme{}, fmt.Errorf("open programme: %w", err)
	}
	p.inUTC()
	if again, err := encMode.Marshal(p); err != nil || !bytes.Equal(again, payload) {
		return Programme{}, fmt.Errorf("open programme: not in its one form")
	}
	if err := p.Validate(); err != nil {
		return Programme{}, fmt.Errorf("open programme: %w", err)
	}
	return p, nil
}

func (p *Programme) inUTC() {
	for i := range p.Events {
		e := &p.Events[i]
		for _, t := range []*time.Time{&e.Open, &e.Close, &e.Forget} {
			*t = t.UTC()
		}
		for j := range e.Sessions {
			e.Sessions[j].From, e.Sessions[j].To = e.Sessions[j].From.UTC(), e.Sessions[j].To.UTC()
		}
	}
}

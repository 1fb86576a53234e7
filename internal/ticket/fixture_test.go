package ticket

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// signerOf gives the signer of a fixed test key.
func signerOf(seed byte) Signer {
	return NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

// clock gives a time on the test's day, 1 June 2030.
func clock(hour, minute int) time.Time { return time.Date(2030, 6, 1, hour, minute, 0, 0, time.UTC) }

func codeKey(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// fair is a programme with a gala (a1, sessions, zones and products by place), a
// derby after it (a1 and codes), and a market at the derby's time that is served
// at the east gate only (codes).
func fair() Programme {
	key := ProgrammeKeyOf(signerOf(1).Public(), false)
	next := ProgrammeKeyOf(signerOf(2).Public(), false)
	demo := ProgrammeKeyOf(signerOf(3).Public(), true)
	return Programme{Version: 7, Events: []ProgrammeEvent{
		{
			ID: "gala", Name: "Summer Gala", Open: clock(10, 0), Close: clock(14, 0), Forget: clock(20, 0),
			Sessions: []Session{
				{ID: "early", From: clock(10, 0), To: clock(12, 0)},
				{ID: "late", From: clock(12, 0), To: clock(14, 0)},
			},
			Places: []PlaceRule{
				{Place: "North 2", Zones: []string{"stand-n", "pit"}},
				{Place: "South", Products: []string{"crew"}},
				{Place: "Main"},
			},
			Products: []string{"crew", "press"},
			Formats:  []string{"a1"}, Keys: []ProgrammeKey{key, next, demo},
		},
		{
			ID: "derby", Open: clock(16, 0), Close: clock(18, 0), Forget: clock(20, 0),
			Formats: []string{"a1", "code"}, Keys: []ProgrammeKey{key}, CodeKey: hex.EncodeToString(codeKey(1)),
		},
		{
			ID: "market", Open: clock(16, 0), Close: clock(18, 0), Forget: clock(20, 0),
			Places:  []PlaceRule{{Place: "East"}},
			Formats: []string{"code"}, CodeKey: hex.EncodeToString(codeKey(2)),
		},
	}}
}

// fairCodes lists one code at both events with codes, and one more at each.
func fairCodes() map[string]CodeList {
	list := func(key byte, codes ...string) CodeList {
		var ids []ID
		for _, c := range codes {
			ids = append(ids, CodeHash(codeKey(key), c))
		}
		return NewCodeList(ids)
	}
	return map[string]CodeList{
		"derby":  list(1, "SEASON-0001", "DERBY-0001"),
		"market": list(2, "SEASON-0001", "MARKET-0001"),
	}
}

func fairVerifier(t *testing.T) *Verifier {
	t.Helper()
	v, err := NewVerifier(fair(), fairCodes(), false)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mint(t *testing.T, s Signer, tk Ticket) string {
	t.Helper()
	text, err := s.Mint(tk)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// galaTicket is a plain ticket of fair that the gala's signers may mint.
func galaTicket() Ticket {
	return Ticket{
		Format: FormatA1, ID: ID{0xa1, 2, 3}, Event: "gala", Session: "early", Zone: "pit",
		NotBefore: clock(9, 0), Expires: clock(15, 0),
	}
}

// drawTicket draws any ticket that may be minted for the event.
func drawTicket(t *rapid.T, event string) Ticket {
	name := func(label string, most int) string {
		return rapid.StringMatching(`([A-Za-z0-9][A-Za-z0-9._+-]{0,9})?`).Filter(func(s string) bool {
			return len(s) <= most
		}).Draw(t, label)
	}
	tk := Ticket{Format: FormatA1, ID: drawID(t), Event: event, Test: rapid.Bool().Draw(t, "test")}
	tk.ID[0] |= 1
	tk.Session = name("session", MaxNames-len(event))
	room := MaxNames - len(event) - len(tk.Session)
	if rapid.Bool().Draw(t, "for_product") {
		tk.Product = name("product", room)
	} else {
		tk.Zone = name("zone", room)
	}
	const year2106 = 1<<32 - 1
	if n := rapid.Int64Range(0, year2106-1).Draw(t, "nbf"); n > 0 {
		tk.NotBefore = time.Unix(n, 0).UTC()
	}
	if n := rapid.Int64Range(0, year2106).Draw(t, "exp"); n > 0 && tk.NotBefore.Before(time.Unix(n, 0)) {
		tk.Expires = time.Unix(n, 0).UTC()
	}
	if len(event)+len(tk.Session)+len(tk.Zone)+len(tk.Product) <= MaxNames-5 {
		tk.Entry = rapid.Uint32().Draw(t, "entry")
	}
	return tk
}

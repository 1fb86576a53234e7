package ticket

import (
	"testing"
)

// FuzzRead looks for a text that makes Read panic, or that is accepted without
// being the one text of its ticket. Ordinary test runs try the seeds; look
// further with `go test ./internal/ticket -fuzz FuzzRead`.
func FuzzRead(f *testing.F) {
	v, err := NewVerifier(fair(), fairCodes(), true)
	if err != nil {
		f.Fatal(err)
	}
	minted := map[ID]string{}
	for i, seed := range []byte{1, 2, 3} {
		tk := galaTicket()
		tk.ID = ID{byte(i + 1)}
		text, err := signerOf(seed).Mint(tk)
		if err != nil {
			f.Fatal(err)
		}
		minted[tk.ID] = text
		f.Add(text)
		f.Add(text[:len(text)/2])
		f.Add(" " + text)
	}
	for _, s := range []string{"", "A1:", "A1:000", "DERBY-0001", "SEASON-0001", "derby-0001", "\xff", "A1:76K"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, reason := v.Read(text)
		switch reason {
		case OK:
		case Invalid, Unknown:
			if got != (Ticket{}) {
				t.Fatalf("%q is %s and yet %+v", text, reason, got)
			}
			return
		default:
			t.Fatalf("%q is %s", text, reason)
		}
		switch got.Format {
		case FormatA1:
			// Only the seeds' keys sign, so only the seeds' texts may pass.
			if minted[got.ID] != text {
				t.Fatalf("%q reads as the ticket of %q", text, minted[got.ID])
			}
		case FormatCode:
			if CodeHash(codeKey(map[string]byte{"derby": 1, "market": 2}[got.Event]), text) != got.ID {
				t.Fatalf("%q reads as the code %s of %s", text, got.ID, got.Event)
			}
		default:
			t.Fatalf("%q has the format %s", text, got.Format)
		}
	})
}

// FuzzReadUnsigned does the same below the signature: what is well formed is
// spelled in the one way.
func FuzzReadUnsigned(f *testing.F) {
	for _, tk := range []Ticket{galaTicket(), {Format: FormatA1, ID: ID{1}, Event: "g", Product: "p", Test: true, Entry: 3}} {
		text, err := signerOf(1).Mint(tk)
		if err != nil {
			f.Fatal(err)
		}
		b, err := decodeBase45(text[len(a1Prefix):])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x84})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		text := a1Prefix + encodeBase45(b)
		tk, s, err := readA1(text)
		if err != nil {
			return
		}
		claims, err := encodeClaims(tk)
		if err != nil {
			t.Fatal(err)
		}
		again, err := sealed{key: s.key, payload: claims, signature: s.signature}.message().MarshalCBOR()
		if err != nil || a1Prefix+encodeBase45(again) != text {
			t.Fatalf("%x reads as %+v, which is spelled %x, %v", b, tk, again, err)
		}
	})
}

// FuzzDecodeRecord: what is accepted is spelled in the one way, and nothing
// panics.
func FuzzDecodeRecord(f *testing.F) {
	for _, r := range []Record{
		{Source: "g", Run: 1, Pos: 1, Event: &Event{Type: EventExit, Place: "North"}},
		{Source: "l", Run: 1, Pos: 2, Feed: &Feed{Subject: "s", Version: 1, Closed: &FeedClosed{Event: "gala"}}},
		{Source: "g", Run: 1, Pos: 3, Claim: &Claim{
			ID: ClaimID{Gate: "g", Run: 1, Pos: 3}, Unit: galaTicket().Unit(), State: Pending, Lease: 1,
			After: []Ref{{Claim: ClaimID{Gate: "h", Run: 2, Pos: 1}, Rev: 1}},
		}},
	} {
		b, err := r.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(b)
		if err != nil {
			return
		}
		if again, err := r.Encode(); err != nil || string(again) != string(b) {
			t.Fatalf("%x is spelled %x, %v", b, again, err)
		}
	})
}

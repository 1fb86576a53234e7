package ticket

import (
	"crypto/ed25519"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// makeVectors is the generator of testdata/vectors.
func makeVectors(t *testing.T) vectors {
	t.Helper()
	var v vectors
	for i, name := range []string{"ticket-1", "ticket-2", "demo", "stranger", "programme"} {
		s := signerOf(byte(i + 1))
		v.keys = append(v.keys, vectorKey{
			Name: name, Seed: hex.EncodeToString(s.priv.Seed()), Public: hex.EncodeToString(s.Public()), ID: s.KeyID(),
		})
	}
	p := vectorsProgramme()
	payload, err := encMode.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := SignProgramme(p, signerOf(5).priv)
	if err != nil {
		t.Fatal(err)
	}
	v.programme = vectorProgramme{
		Key: "programme", Programme: p, Payload: hex.EncodeToString(payload), Signed: hex.EncodeToString(signed),
	}
	for _, c := range []string{"4006381333931", "https://tickets.example/t/9F3A-77", "Ünïcode 42"} {
		key := codeKey(1)
		v.codes = append(v.codes, vectorCode{Event: "derby", Key: hex.EncodeToString(key), Text: c, Hash: CodeHash(key, c)})
	}
	v.valid = validVectors(t)
	v.invalid = refusedVectors(t)
	return v
}

// vectorsProgramme is fair with one more event, whose name is as long as can be.
func vectorsProgramme() Programme {
	p := fair()
	long := p.Events[1]
	long.ID, long.Formats, long.CodeKey = strings.Repeat("E", MaxNames), []string{"a1"}, ""
	eight := long
	eight.ID = "EVENT-08"
	p.Events = append(p.Events, long, eight)
	return p
}

func validVectors(t *testing.T) []vectorValid {
	const noon, year2106 = 1906545600, 1<<32 - 1 // 2030-06-01T12:00:00Z
	id := func(b byte) (id ID) {
		for i := range id {
			id[i] = b + byte(i)
		}
		return id
	}
	out := []vectorValid{
		{Name: "only an event", Key: "ticket-1", Ticket: vectorTicket{ID: id(0), Event: "gala"}},
		{Name: "session and zone", Key: "ticket-1", Ticket: vectorTicket{ID: id(1), Event: "gala", Session: "early", Zone: "pit"}},
		{Name: "zone without a session", Key: "ticket-1", Ticket: vectorTicket{ID: id(2), Event: "gala", Zone: "stand-n"}},
		{Name: "product", Key: "ticket-1", Ticket: vectorTicket{ID: id(3), Event: "gala", Product: "crew"}},
		{Name: "test ticket", Key: "ticket-1", Ticket: vectorTicket{ID: id(4), Event: "gala", Zone: "pit", Test: true}},
		{Name: "test ticket for a product", Key: "ticket-1", Ticket: vectorTicket{ID: id(5), Event: "gala", Product: "press", Test: true}},
		{Name: "test ticket of only an event", Key: "ticket-1", Ticket: vectorTicket{ID: id(6), Event: "gala", Test: true}},
		{Name: "window", Key: "ticket-1", Ticket: vectorTicket{ID: id(7), Event: "gala", NotBefore: noon - 3600, Expires: noon}},
		{Name: "only an end", Key: "ticket-1", Ticket: vectorTicket{ID: id(8), Event: "gala", Expires: noon}},
		{Name: "second key of the event", Key: "ticket-2", Ticket: vectorTicket{ID: id(9), Event: "gala", Zone: "pit"}},
		{Name: "third entry of a pass", Key: "ticket-1", Ticket: vectorTicket{ID: id(10), Event: "derby", Entry: 3}},
		{Name: "entry of 32 bits", Key: "ticket-1", Ticket: vectorTicket{ID: id(11), Event: "derby", Zone: "b", Entry: year2106}},
		{Name: "longest event, test", Key: "ticket-1", Ticket: vectorTicket{
			ID: id(12), Event: strings.Repeat("E", MaxNames), NotBefore: year2106 - 1, Expires: year2106, Test: true,
		}},
		{Name: "largest", Key: "ticket-1", Ticket: vectorTicket{
			ID: id(240), Event: "EVENT-08", Session: "session8", Product: "product8", NotBefore: year2106 - 1, Expires: year2106, Test: true,
		}},
	}
	signers := map[string]Signer{"ticket-1": signerOf(1), "ticket-2": signerOf(2)}
	for i := range out {
		o := &out[i]
		claims, err := encodeClaims(o.Ticket.ticket())
		if err != nil {
			t.Fatal(err)
		}
		o.Text = mint(t, signers[o.Key], o.Ticket.ticket())
		b, err := decodeBase45(o.Text[len(a1Prefix):])
		if err != nil {
			t.Fatal(err)
		}
		o.Claims, o.COSE = hex.EncodeToString(claims), hex.EncodeToString(b)
	}
	return out
}

func refusedVectors(t *testing.T) []vectorInvalid {
	tk := galaTicket()
	text := mint(t, signerOf(1), tk)
	half := len(text) / 2
	elsewhere := tk
	elsewhere.Event = "picnic"
	out := []vectorInvalid{
		{"empty", "", Invalid, "no text"},
		{"prefix only", "A1:", Invalid, "nothing behind the prefix"},
		{"no prefix", text[3:], Invalid, "the prefix A1: is part of the text"},
		{"lower case", strings.ToLower(text), Invalid, "base45 has no lower case"},
		{"lower-case prefix", "a1:" + text[3:], Invalid, "the prefix is A1:"},
		{"space before", " " + text, Invalid, "nothing is trimmed"},
		{"space after", text + " ", Invalid, "nothing is trimmed"},
		{"newline after", text + "\n", Invalid, "nothing is trimmed"},
		{"newline inside", text[:half] + "\n" + text[half:], Invalid, "nothing is skipped"},
		{"padding", text + "=", Invalid, "base45 has no padding"},
		{"cut off", text[:len(text)-2], Invalid, "the signature is cut off"},
		{"single last character", text[:len(text)-len(text)%3-2], Invalid, "base45 never ends in a single character"},
		{"overflowing triplet", "A1::::" + text[6:], Invalid, "::: is 91124, more than 65535"},
		{"overflowing pair", "A1:" + "::", Invalid, ":: is 2024, more than 255"},
		{"too long", text + strings.Repeat("0", MaxA1), Invalid, "more than 221 characters"},
		{"unlisted code", "4006381333932", Invalid, "on no list, and the programme has signed tickets, too"},
		{"code with a space", "4006381333931 ", Invalid, "another text than the listed one"},
		{"unknown event", mint(t, signerOf(1), elsewhere), Unknown, "the programme has no event picnic"},
		{"unknown key", mint(t, signerOf(4), tk), Unknown, "the event has no key with this id"},
		{"demo key", mint(t, signerOf(3), tk), Unknown, "the event has this key marked demo, and demo is off"},
		{"key of another event", mint(t, signerOf(2), Ticket{Format: FormatA1, ID: tk.ID, Event: "derby"}), Unknown, "the derby does not have this key"},
	}
	out = append(out, tamperedVectors(t, text)...)
	return append(out, respelledVectors(t)...)
}

// tamperedVectors change the message under its signature.
func tamperedVectors(t *testing.T, text string) []vectorInvalid {
	b, err := decodeBase45(text[len(a1Prefix):])
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(b []byte) []byte) string { return a1Prefix + encodeBase45(change(slices.Clone(b))) }
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	return []vectorInvalid{
		{"changed id", with(func(b []byte) []byte { b[40] ^= 1; return b }), Invalid, "the signature is for another payload"},
		{"changed signature", with(func(b []byte) []byte { b[len(b)-40] ^= 1; return b }), Invalid, "the signature does not verify"},
		{"S plus the group's order", with(func(b []byte) []byte {
			s := b[len(b)-32:]
			slices.Reverse(s)
			new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(s)
			slices.Reverse(s)
			return b
		}), Invalid, "S must be below the group's order (RFC 8032, 5.1.7)"},
		{"no signature", with(func(b []byte) []byte { return append(b[:len(b)-ed25519.SignatureSize-2], 0x40) }), Invalid, "the signature is empty"},
		{"trailing byte", with(func(b []byte) []byte { return append(b, 0) }), Invalid, "one message and nothing behind it"},
		{"tagged", with(func(b []byte) []byte { return append([]byte{0xd2}, b...) }), Invalid, "the COSE_Sign1 is untagged"},
		{"indefinite array", with(func(b []byte) []byte { b[0] = 0x9f; return append(b, 0xff) }), Invalid, "lengths are definite"},
	}
}

// respelledVectors are well signed and say what a ticket says, but not in its one
// encoding.
func respelledVectors(t *testing.T) []vectorInvalid {
	s := signerOf(1)
	tag := tagOf(s.Public())
	id := slices.Repeat([]byte{7}, 16)
	sign := func(pass []any, change func(protected, unprotected, claims map[any]any)) string {
		protected, unprotected := map[any]any{1: -8, 4: tag[:]}, map[any]any{}
		claims := map[any]any{4: 1906545600, 7: id, -65537: pass}
		change(protected, unprotected, claims)
		payload, err := encMode.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		return resign(t, s, protected, unprotected, payload)
	}
	type m = map[any]any
	same := func(_, _, _ m) {}
	pit := []any{"gala", "", "pit"}
	return []vectorInvalid{
		{"trailing empty text", sign([]any{"gala", "", ""}, same), Invalid, "empty texts at the end are left out"},
		{"trailing flags", sign([]any{"gala", "", "pit", 0}, same), Invalid, "zero numbers at the end are left out"},
		{"unknown flag", sign([]any{"gala", "", "pit", 4}, same), Invalid, "only the flags 1 and 2 exist"},
		{"product flag without a product", sign([]any{"gala", 2}, same), Invalid, "the flag says what the third text is, and there is none"},
		{"name with a space", sign([]any{"gala", "", "the pit"}, same), Invalid, "names have A-Z a-z 0-9 . _ + - only"},
		{"names of 25 bytes", sign([]any{"gala", "", strings.Repeat("z", 21)}, same), Invalid, "names have 24 bytes together at most"},
		{"zero time", sign(pit, func(_, _, c m) { c[5] = 0 }), Invalid, "a time that is not set is left out"},
		{"time as a float", sign(pit, func(_, _, c m) { c[4] = 1906545600.0 }), Invalid, "times are integers"},
		{"short id", sign(pit, func(_, _, c m) { c[7] = id[:15] }), Invalid, "an id has 16 bytes"},
		{"zero id", sign(pit, func(_, _, c m) { c[7] = make([]byte, 16) }), Invalid, "an id is random, never zero"},
		{"further claim", sign(pit, func(_, _, c m) { c[1] = "issuer" }), Invalid, "there are no other claims"},
		{"another algorithm", sign(pit, func(p, _, _ m) { p[1] = -7 }), Invalid, "the algorithm is the key's, EdDSA (-8)"},
		{"no algorithm", sign(pit, func(p, _, _ m) { delete(p, 1) }), Invalid, "the algorithm is stated"},
		{"unprotected key id", sign(pit, func(p, u, _ m) { delete(p, 4); u[4] = tag[:] }), Invalid, "the key id is protected"},
		{"further protected header", sign(pit, func(p, _, _ m) { p[3] = 1 }), Invalid, "there are no other headers"},
		{"unprotected header", sign(pit, func(_, u, _ m) { u[3] = 1 }), Invalid, "the unprotected header is empty"},
	}
}

package ticket

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawClaimID(t)
		c.Run, c.Pos = Run(rapid.Uint64().Draw(t, "any_run")), rapid.Uint64Min(1).Draw(t, "any_pos")
		if got, err := ParseClaimID(c.String()); err != nil || got != c {
			t.Fatalf("ParseClaimID(%q) = %v, %v", c, got, err)
		}
		if got, err := ClaimIDFromBytes(c.Bytes()); err != nil || got != c {
			t.Fatalf("ClaimIDFromBytes(%x) = %v, %v", c.Bytes(), got, err)
		}
		u := drawUnit(t)
		if got, err := UnitFromKey(u.Key()); err != nil || got != u {
			t.Fatalf("UnitFromKey(%x) = %v, %v", u.Key(), got, err)
		}
		if !bytes.HasPrefix(u.Key(), EventPrefix(u.Event)) {
			t.Fatalf("key %x without its event's prefix", u.Key())
		}
		if got, err := ParseID(u.Ticket.String()); err != nil || got != u.Ticket {
			t.Fatalf("ParseID(%q) = %v, %v", u.Ticket, got, err)
		}
	})
}

// A text names at most one id, and an id has one text.
func TestParsersAcceptOneSpelling(t *testing.T) {
	spell := rapid.StringMatching(`[g/]{0,3}(/[0-9a-fA-F+_ ]{15,17})?/[0-9+_ ]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		s := spell.Draw(t, "text")
		if c, err := ParseClaimID(s); err == nil && c.String() != s {
			t.Fatalf("ParseClaimID(%q) is spelled %q", s, c)
		}
		b := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "bytes")
		if c, err := ClaimIDFromBytes(b); err == nil && !bytes.Equal(c.Bytes(), b) {
			t.Fatalf("ClaimIDFromBytes(%x) is spelled %x", b, c.Bytes())
		}
		if u, err := UnitFromKey(b); err == nil && !bytes.Equal(u.Key(), b) {
			t.Fatalf("UnitFromKey(%x) is spelled %x", b, u.Key())
		}
	})
	for _, s := range []string{
		"", "g", "/", "g/0000000000000007", "g/0000000000000007/", "g/0000000000000007/0", "g/0000000000000007/01",
		"/0000000000000007/1", "g/000000000000007/1", "g/000000000000000A/1", "g/0000000000000007/+1", "g/0000000000000007/-1",
		"g/0000000000000007/18446744073709551616",
	} {
		if c, err := ParseClaimID(s); err == nil {
			t.Errorf("ParseClaimID(%q) = %v", s, c)
		}
	}
	for _, s := range []string{"", "7", "000000000000000A", "+000000000000007", "00000000000000007", "0x00000000000007", "000000000000_007"} {
		if r, err := ParseRun(s); err == nil {
			t.Errorf("ParseRun(%q) = %v", s, r)
		}
	}
	for _, s := range []string{"", "00", strings.Repeat("A", 32), strings.Repeat("0", 34), strings.Repeat("g", 32)} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("ParseID(%q) = %v", s, id)
		}
	}
}

func TestIDsInJSON(t *testing.T) {
	type all struct {
		Claim, None ClaimID
		Run         Run
		ID          ID
		State       State
		Class       Class
	}
	in := all{
		Claim: ClaimID{Gate: "http/shop", Run: 10, Pos: 3}, Run: 255, ID: ID{0xab}, State: Presumed, Class: Untrusted,
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Claim":"http/shop/000000000000000a/3","None":"","Run":"00000000000000ff",` +
		`"ID":"ab000000000000000000000000000000","State":"presumed","Class":"untrusted"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	var out all
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("got %+v, %v, want %+v", out, err, in)
	}
	for _, bad := range []string{
		`{"Claim":"x"}`, `{"Run":"7"}`, `{"ID":"ab"}`, `{"State":"gone"}`, `{"State":""}`, `{"Class":"Trusted"}`,
	} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Units of one event share a prefix that no other event's keys have.
func TestEventPrefixesDoNotOverlap(t *testing.T) {
	a, b := Unit{Event: "gala"}, Unit{Event: "gala-2"}
	if bytes.HasPrefix(b.Key(), EventPrefix(a.Event)) || bytes.HasPrefix(a.Key(), EventPrefix(b.Event)) {
		t.Errorf("%x and %x share a prefix", a.Key(), b.Key())
	}
}

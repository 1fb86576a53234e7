package ticket

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"
)

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		b, err := r.Encode()
		if err != nil {
			t.Fatalf("encode %+v: %v", r, err)
		}
		got, err := DecodeRecord(b)
		if err != nil {
			t.Fatalf("decode %x: %v", b, err)
		}
		again, err := got.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("encoded again: %x, %v, want %x", again, err, b)
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, want %+v", got, r)
		}
	})
}

// Whatever bytes are accepted are the one spelling of the record they give:
// records are stored, compared and forwarded as bytes.
func TestDecodeRecordHasOneSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := drawRecord(t).Encode()
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			c := mutate(t, b)
			r, err := DecodeRecord(c)
			if err != nil {
				continue
			}
			if again, err := r.Encode(); err != nil || !bytes.Equal(again, c) {
				t.Fatalf("accepted %x, which encodes as %x, %v", c, again, err)
			}
		}
	})
}

// mutate changes, inserts or removes a few bytes.
func mutate(t *rapid.T, b []byte) []byte {
	c := bytes.Clone(b)
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		i := rapid.IntRange(0, len(c)-1).Draw(t, "where")
		v := rapid.Byte().Draw(t, "byte")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			c[i] = v
		case 1:
			c = append(c[:i:i], append([]byte{v}, c[i:]...)...)
		case 2:
			if len(c) > 1 {
				c = append(c[:i:i], c[i+1:]...)
			}
		}
	}
	return c
}

// plain is a record whose parts a test can respell.
func plain(t *testing.T) (Record, map[any]any) {
	t.Helper()
	r := Record{Source: "gate-a", Run: 7, Pos: 1, Feed: &Feed{
		Subject: "s", Version: 1, Revoke: &FeedRevoke{Format: FormatA1, Ticket: ID{1, 2}, Revoked: true},
	}}
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var m map[any]any
	if err := cbor.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return r, m
}

func TestDecodeRecordRefusesOtherSpellings(t *testing.T) {
	r, m := plain(t)
	good, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeRecord(good); err != nil {
		t.Fatal(err)
	}
	feed := m[uint64(6)].(map[any]any)
	revoke := feed[uint64(4)].(map[any]any)
	encode := func() []byte {
		b, err := encMode.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(encode(), good) {
		t.Fatalf("the untouched map encodes as %x, want %x", encode(), good)
	}
	tests := map[string]func() []byte{
		"trailing byte":      func() []byte { return append(bytes.Clone(good), 0) },
		"cut off":            func() []byte { return good[:len(good)-1] },
		"long integer":       func() []byte { return bytes.Replace(good, []byte{0x03, 0x01, 0x06}, []byte{0x03, 0x18, 0x01, 0x06}, 1) },
		"indefinite map":     func() []byte { return append(append([]byte{0xbf}, good[1:]...), 0xff) },
		"unknown field":      func() []byte { m[uint64(9)] = 1; defer delete(m, uint64(9)); return encode() },
		"empty optional":     func() []byte { m[uint64(4)] = nil; defer delete(m, uint64(4)); return encode() },
		"short ticket id":    func() []byte { revoke[uint64(2)] = []byte{1, 2}; return encode() },
		"long ticket id":     func() []byte { revoke[uint64(2)] = append([]byte{1, 2}, make([]byte, 15)...); return encode() },
		"ticket id as array": func() []byte { revoke[uint64(2)] = append([]any{1, 2}, zeros(14)...); return encode() },
		"float for an int":   func() []byte { m[uint64(3)] = 1.0; defer func() { m[uint64(3)] = uint64(1) }(); return encode() },
		"bytes for a text": func() []byte {
			m[uint64(1)] = []byte("gate-a")
			defer func() { m[uint64(1)] = "gate-a" }()
			return encode()
		},
		"tagged record":       func() []byte { return append([]byte{0xc6}, good...) },
		"self-described CBOR": func() []byte { return append([]byte{0xd9, 0xd9, 0xf7}, good...) },
	}
	for name, spell := range tests {
		revoke[uint64(2)] = append([]byte{1, 2}, make([]byte, 14)...)
		b := spell()
		if bytes.Equal(b, good) {
			t.Errorf("%s: the test changed nothing", name)
		}
		if got, err := DecodeRecord(b); err == nil {
			t.Errorf("%s: accepted %x as %+v", name, b, got)
		}
	}
}

func zeros(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = 0
	}
	return out
}

func TestRecordValidate(t *testing.T) {
	claim := func(change func(*Record)) Record {
		r := Record{Source: "gate-a", Run: 7, Pos: 3, Claim: &Claim{
			ID: ClaimID{Gate: "gate-a", Run: 7, Pos: 3}, Unit: Unit{Event: "gala", Format: FormatA1}, State: Pending,
			Place: "North", Lease: 25 * time.Second,
		}}
		change(&r)
		return r
	}
	if err := claim(func(*Record) {}).Validate(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*Record){
		"no source":             func(r *Record) { r.Source, r.Claim.ID.Gate = "", "" },
		"no position":           func(r *Record) { r.Pos, r.Claim.ID.Pos = 0, 0 },
		"two contents":          func(r *Record) { r.Event = &Event{Type: EventExit} },
		"no content":            func(r *Record) { r.Claim = nil },
		"another gate's claim":  func(r *Record) { r.Claim.ID.Gate = "gate-b" },
		"rev 0 elsewhere":       func(r *Record) { r.Claim.ID.Pos = 2 },
		"rev 0 in another run":  func(r *Record) { r.Claim.ID.Run = 6 },
		"rev 1 before rev 0":    func(r *Record) { r.Claim.Rev, r.Claim.ID.Pos = 1, 4 },
		"no state":              func(r *Record) { r.Claim.State = 0 },
		"unknown state":         func(r *Record) { r.Claim.State = 6 },
		"no unit":               func(r *Record) { r.Claim.Unit.Event = "" },
		"no format":             func(r *Record) { r.Claim.Unit.Format = 0 },
		"no lease":              func(r *Record) { r.Claim.Lease = 0 },
		"endless lease":         func(r *Record) { r.Claim.Lease = time.Hour + 1 },
		"unknown class":         func(r *Record) { r.Claim.Claimed.Class = 2 },
		"negative bound":        func(r *Record) { r.Claim.Claimed.Bound = -1 },
		"endless after":         func(r *Record) { r.Claim.After = make([]Ref, maxAfter+1) },
		"zero byte in a name":   func(r *Record) { r.Claim.Unit.Event = "ga\x00la" },
		"endless place":         func(r *Record) { r.Claim.Place = strings.Repeat("x", MaxText+1) },
		"place is not UTF-8":    func(r *Record) { r.Claim.Place = "\xff" },
		"event without a type":  func(r *Record) { r.Claim, r.Event = nil, &Event{Place: "North"} },
		"event, unknown class":  func(r *Record) { r.Claim, r.Event = nil, &Event{Type: EventExit, Stamp: Stamp{Class: 2}} },
		"detail is not UTF-8":   func(r *Record) { r.Claim, r.Event = nil, &Event{Type: EventExit, Detail: "\xff"} },
		"endless detail":        func(r *Record) { r.Claim, r.Event = nil, &Event{Type: EventExit, Detail: strings.Repeat("x", 1<<20)} },
		"feed without contents": func(r *Record) { r.Claim, r.Feed = nil, &Feed{Subject: "s", Version: 1} },
		"feed without version":  func(r *Record) { r.Claim, r.Feed = nil, &Feed{Subject: "s", Closed: &FeedClosed{Event: "gala"}} },
		"feed, two contents": func(r *Record) {
			r.Claim, r.Feed = nil, &Feed{Subject: "s", Version: 1, Closed: &FeedClosed{Event: "gala"}, Gate: &FeedGate{}}
		},
		"chunk beyond chunks": func(r *Record) {
			r.Claim, r.Feed = nil, &Feed{Subject: "s", Version: 1, Codes: &FeedCodes{Event: "gala", Chunk: 1, Chunks: 1}}
		},
		"half a hash": func(r *Record) {
			r.Claim, r.Feed = nil, &Feed{Subject: "s", Version: 1, Codes: &FeedCodes{Event: "gala", Chunks: 1, Hashes: make([]byte, 15)}}
		},
		"gate state is not UTF-8": func(r *Record) {
			r.Claim, r.Feed = nil, &Feed{Subject: "s", Version: 1, Gate: &FeedGate{Device: "d", State: "\xff"}}
		},
	}
	for name, change := range tests {
		r := claim(change)
		if err := r.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if b, err := r.Encode(); err == nil {
			t.Errorf("%s: encoded as %.40x", name, b)
		}
	}
}

func TestDecodeRecordLimits(t *testing.T) {
	r := Record{Source: "ledger/1", Run: 1, Pos: 1, Feed: &Feed{
		Subject: "s", Version: 1, Programme: &FeedProgramme{Signed: make([]byte, MaxRecord)},
	}}
	if b, err := r.Encode(); err == nil {
		t.Errorf("encoded %d bytes, which no one decodes", len(b))
	}
	if _, err := DecodeRecord(make([]byte, MaxRecord+1)); err == nil {
		t.Error("decoded more than MaxRecord")
	}
}

package ticket

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCodeHash(t *testing.T) {
	// RFC 4231, test case 2, cut to 16 bytes.
	if got := CodeHash([]byte("Jefe"), "what do ya want for nothing?"); got.String() != "5bdcc146bf60754e6a042426089575c7" {
		t.Errorf("got %s", got)
	}
}

func TestCheckCode(t *testing.T) {
	for _, good := range []string{"1", "ÄÖ €", strings.Repeat("x", MaxCode), " ", "https://example.com/t?x=1"} {
		if err := CheckCode(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", strings.Repeat("x", MaxCode+1), "a\nb", "a\x00", "\x7f", "\u0085", "\xc3"} {
		if err := CheckCode(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestCodeList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := make([]ID, rapid.IntRange(0, 40).Draw(t, "n"))
		for i := range ids {
			ids[i] = ID{rapid.Byte().Draw(t, "first"), rapid.ByteRange(0, 3).Draw(t, "second")}
		}
		before := slices.Clone(ids)
		l := NewCodeList(ids)
		if !slices.Equal(ids, before) {
			t.Fatal("the caller's slice was changed")
		}
		for a := range 256 {
			for b := range byte(4) {
				id := ID{byte(a), b}
				if l.Has(id) != slices.Contains(ids, id) {
					t.Fatalf("Has(%s) = %v", id, l.Has(id))
				}
			}
		}
		slices.SortFunc(before, compareID)
		if n := len(slices.Compact(before)); l.Len() != n {
			t.Fatalf("%d codes, want %d", l.Len(), n)
		}
		if l.Has(ID{0, 0, 1}) {
			t.Fatal("has a hash that nobody put there")
		}
	})
	var none CodeList
	if none.Has(ID{}) || none.Len() != 0 {
		t.Error("the empty list has something")
	}
}

// bigList has n codes.
func bigList(n int) CodeList {
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = ID{byte(i >> 16), byte(i >> 8), byte(i)}
	}
	return NewCodeList(ids)
}

func TestChunksTravel(t *testing.T) {
	for _, n := range []int{0, 1, codeChunk - 1, codeChunk, codeChunk + 1, 250_000} {
		list := bigList(n)
		chunks := list.Chunks("derby")
		for _, c := range chunks {
			r := Record{Source: "ledger/1", Run: 1, Pos: 1, Feed: &Feed{
				Subject: CodesSubject("derby", c.Chunk), Version: 1, Codes: &c,
			}}
			b, err := r.Encode()
			if err != nil || len(c.Hashes) >= 512<<10 {
				t.Fatalf("chunk %d of %d: %d bytes, %v", c.Chunk, n, len(b), err)
			}
			if _, err := DecodeRecord(b); err != nil {
				t.Fatal(err)
			}
		}
		slices.Reverse(chunks)
		if len(chunks) > 1 {
			if _, complete, err := AssembleCodes(chunks[1:]); complete || err != nil {
				t.Errorf("%d codes without a chunk: complete %v, %v", n, complete, err)
			}
		}
		got, complete, err := AssembleCodes(append(chunks, chunks[0]))
		if err != nil || !complete || got.Len() != n || !slices.Equal(got.sorted, list.sorted) {
			t.Errorf("%d codes came back as %d, complete %v, %v", n, got.Len(), complete, err)
		}
	}
}

func TestAssembleCodesRefuses(t *testing.T) {
	list := bigList(codeChunk + 1)
	tests := map[string]func(c []FeedCodes){
		"another event":     func(c []FeedCodes) { c[1].Event = "gala" },
		"another length":    func(c []FeedCodes) { c[1].Chunks = 3 },
		"negative chunk":    func(c []FeedCodes) { c[1].Chunk = -1 },
		"chunk beyond":      func(c []FeedCodes) { c[1].Chunk = 2 },
		"half a hash":       func(c []FeedCodes) { c[1].Hashes = c[1].Hashes[:15] },
		"chunks exchanged":  func(c []FeedCodes) { c[0].Chunk, c[1].Chunk = 1, 0 },
		"a hash twice":      func(c []FeedCodes) { c[1].Hashes = append(c[1].Hashes, c[1].Hashes...) },
		"no chunks":         func(c []FeedCodes) { c[0].Chunks, c[1].Chunks = 0, 0 },
		"a billion chunks":  func(c []FeedCodes) { c[0].Chunks, c[1].Chunks = 1<<30, 1<<30 },
		"hashes in reverse": func(c []FeedCodes) { copy(c[0].Hashes, slices.Repeat([]byte{0xff}, 16)) },
	}
	for name, change := range tests {
		chunks := list.Chunks("derby")
		change(chunks)
		if _, complete, err := AssembleCodes(chunks); err == nil {
			t.Errorf("%s: no error, complete %v", name, complete)
		}
	}
	if _, complete, err := AssembleCodes(nil); complete || err != nil {
		t.Errorf("no chunks at all: complete %v, %v", complete, err)
	}
}

// What a gate does for each text of a list of 250,000.
func BenchmarkReadCode(b *testing.B) {
	p := fair()
	key, err := hex.DecodeString(p.Events[1].CodeKey)
	if err != nil {
		b.Fatal(err)
	}
	list := NewCodeList(append(bigList(250_000).sorted, CodeHash(key, "DERBY-0001")))
	v, err := NewVerifier(p, map[string]CodeList{"derby": list}, false)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, reason := v.Read("DERBY-0001"); reason != OK {
			b.Fatal(reason)
		}
	}
}

// A signed ticket's reading is mostly one Ed25519 verification.
func BenchmarkReadA1(b *testing.B) {
	v, err := NewVerifier(fair(), nil, false)
	if err != nil {
		b.Fatal(err)
	}
	text, err := signerOf(1).Mint(galaTicket())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, reason := v.Read(text); reason != OK {
			b.Fatal(reason)
		}
	}
}

package ticket

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Limits of the format code.
const (
	MaxCode   = 512     // bytes of a text
	codeChunk = 30_000  // hashes in a FeedCodes: 480,000 bytes
	maxChunks = 1 << 10 // chunks of a list: 30 million codes
)

// CheckCode returns an error when a text can be no code of format code: 1 to
// MaxCode bytes of valid UTF-8 without control characters. Nothing is trimmed or
// folded: another spelling is another code.
func CheckCode(text string) error {
	switch {
	case text == "" || len(text) > MaxCode:
		return fmt.Errorf("code of %d bytes, want 1 to %d", len(text), MaxCode)
	case !utf8.ValidString(text):
		return fmt.Errorf("code %q is not UTF-8", shorten(text))
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return fmt.Errorf("code %q has the control character %U", shorten(text), r)
		}
	}
	return nil
}

// CodeHash is the identity of a code: HMAC-SHA256 of its text under the event's
// code key, cut to 16 bytes. Without the key a list tells nothing about codes
// that can be guessed.
func CodeHash(key []byte, text string) (id ID) {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	copy(id[:], h.Sum(nil))
	return id
}

// CodeList is an event's list of code hashes. The zero value is an empty list.
// It is never changed and may be shared.
type CodeList struct {
	sorted []ID // ascending, each once
}

// NewCodeList makes a list of the hashes, in whatever order they come and
// however often.
func NewCodeList(hashes []ID) CodeList {
	s := slices.Clone(hashes)
	slices.SortFunc(s, compareID)
	return CodeList{sorted: slices.Compact(s)}
}

func compareID(a, b ID) int { return bytes.Compare(a[:], b[:]) }

// Has reports whether the hash is on the list.
func (l CodeList) Has(id ID) bool {
	_, found := slices.BinarySearchFunc(l.sorted, id, compareID)
	return found
}

// Len is the number of codes on the list.
func (l CodeList) Len() int { return len(l.sorted) }

// Chunks cuts the list into feed entries of less than 512 KiB for the event. An
// empty list is one empty chunk, so that a list can be taken back.
func (l CodeList) Chunks(event string) []FeedCodes {
	n := max(1, (len(l.sorted)+codeChunk-1)/codeChunk)
	out := make([]FeedCodes, 0, n)
	for i := range n {
		part := l.sorted[i*codeChunk : min((i+1)*codeChunk, len(l.sorted))]
		hashes := make([]byte, 0, len(part)*len(ID{}))
		for _, id := range part {
			hashes = append(hashes, id[:]...)
		}
		out = append(out, FeedCodes{Event: event, Chunk: i, Chunks: n, Hashes: hashes})
	}
	return out
}

// AssembleCodes puts the chunks of one version of one event's list together, in
// whatever order they come. The second result is false, without an error, while
// chunks are missing. It is an error when chunks do not belong together, or the
// hashes do not ascend over the whole list.
func AssembleCodes(chunks []FeedCodes) (CodeList, bool, error) {
	if len(chunks) == 0 {
		return CodeList{}, false, nil
	}
	of, event := chunks[0].Chunks, chunks[0].Event
	if of < 1 || of > maxChunks {
		return CodeList{}, false, fmt.Errorf("assemble codes of %q: %d chunks, want 1 to %d", event, of, maxChunks)
	}
	parts := make([][]byte, of)
	have := 0
	for _, c := range chunks {
		if c.Event != event || c.Chunks != of || c.Chunk < 0 || c.Chunk >= of || len(c.Hashes)%len(ID{}) != 0 {
			return CodeList{}, false, fmt.Errorf("assemble codes of %q: chunk %d of %d of %q with %d bytes does not belong to it",
				event, c.Chunk, c.Chunks, c.Event, len(c.Hashes))
		}
		if parts[c.Chunk] == nil {
			have++
		}
		parts[c.Chunk] = append([]byte{}, c.Hashes...)
	}
	if have < of {
		return CodeList{}, false, nil
	}
	list, err := ascending(parts)
	if err != nil {
		return CodeList{}, false, fmt.Errorf("assemble codes of %q: %w", event, err)
	}
	return list, true, nil
}

func ascending(parts [][]byte) (CodeList, error) {
	var l CodeList
	for _, p := range parts {
		for ; len(p) > 0; p = p[len(ID{}):] {
			id := ID(p[:len(ID{})])
			if n := len(l.sorted); n > 0 && compareID(l.sorted[n-1], id) >= 0 {
				return CodeList{}, fmt.Errorf("hash %d does not ascend", n)
			}
			l.sorted = append(l.sorted, id)
		}
	}
	return l, nil
}

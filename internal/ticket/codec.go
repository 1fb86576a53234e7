package ticket

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
)

// Limits of a record, so that a hostile or broken one costs nothing else.
const (
	MaxRecord = 600 << 10 // bytes, encoded; a code-list chunk is below 512 KiB
	MaxText   = 256       // bytes of any name within a record
	MaxDetail = 4 << 10   // bytes of an event's detail
	maxAfter  = 64
)

var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 12,
		MaxArrayElements: 1024, MaxMapPairs: 64, TagsMd: cbor.TagsForbidden,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: only a changed library could reach this
	}
	return v
}

// Encode gives the record's one form: deterministic CBOR (RFC 8949, 4.2.1). What
// it gives, DecodeRecord reads.
func (r Record) Encode() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	b, err := encMode.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	if len(b) > MaxRecord {
		return nil, fmt.Errorf("encode record: %d bytes, at most %d", len(b), MaxRecord)
	}
	return b, nil
}

// DecodeRecord reads a record strictly: unknown fields, duplicate keys, other
// spellings of a field and anything that Validate refuses are errors. Whatever
// bytes it accepts are those that Encode gives: the codec alone would also take
// longer integers, nulls, and an id that is too short or too long.
func DecodeRecord(b []byte) (Record, error) {
	if len(b) > MaxRecord {
		return Record{}, fmt.Errorf("decode record: %d bytes, at most %d", len(b), MaxRecord)
	}
	var r Record
	if err := decMode.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("decode record: %w", err)
	}
	again, err := r.Encode()
	if err != nil {
		return Record{}, fmt.Errorf("decode record: %w", err)
	}
	if !bytes.Equal(again, b) {
		return Record{}, fmt.Errorf("decode record %s/%s/%d: not in its one form", r.Source, r.Run, r.Pos)
	}
	return r, nil
}

// Validate returns an error when the record is not of the form that the
// protocol gives it.
func (r Record) Validate() error {
	if err := names("source", string(r.Source)); err != nil {
		return err
	}
	if r.Source == "" || r.Pos == 0 {
		return fmt.Errorf("record without a source or a position")
	}
	switch n := count(r.Claim != nil, r.Event != nil, r.Feed != nil); {
	case n != 1:
		return fmt.Errorf("record %s/%s/%d has %d contents, want 1", r.Source, r.Run, r.Pos, n)
	case r.Claim != nil:
		return r.validateClaim()
	case r.Event != nil:
		return r.Event.validate()
	}
	return r.Feed.validate()
}

func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

func (r Record) validateClaim() error {
	c := r.Claim
	switch {
	case c.ID.Gate != r.Source:
		return fmt.Errorf("claim %s written by %q: only its own gate may", c.ID, r.Source)
	case c.ID.Pos == 0 || c.Rev == 0 && (c.ID.Run != r.Run || c.ID.Pos != r.Pos):
		return fmt.Errorf("claim %s: rev 0 must stand at its own position", c.ID)
	case c.Rev > 0 && c.ID.Run == r.Run && c.ID.Pos >= r.Pos:
		return fmt.Errorf("claim %s: rev %d stands before rev 0, at %d", c.ID, c.Rev, r.Pos)
	case c.State < Pending || c.State > Admitted:
		return fmt.Errorf("claim %s: unknown state %d", c.ID, c.State)
	case c.Unit.Event == "" || c.Unit.Format == 0:
		return fmt.Errorf("claim %s: no unit", c.ID)
	case c.Lease <= 0 || c.Lease > time.Hour:
		return fmt.Errorf("claim %s: lease %s, want up to an hour", c.ID, c.Lease)
	case len(c.After) > maxAfter:
		return fmt.Errorf("claim %s: %d claims in after, at most %d", c.ID, len(c.After), maxAfter)
	}
	if err := c.Claimed.validate(); err != nil {
		return fmt.Errorf("claim %s: %w", c.ID, err)
	}
	for _, a := range c.After {
		if err := names("claim after", string(a.Claim.Gate)); err != nil {
			return err
		}
	}
	return names("claim", c.Unit.Event, c.Lane, c.Place, string(c.Reason))
}

func (s Stamp) validate() error {
	if s.Class > Untrusted || s.Bound < 0 {
		return fmt.Errorf("stamp of clock class %d with error bound %d", s.Class, s.Bound)
	}
	return nil
}

func (e *Event) validate() error {
	if e.Type == "" {
		return fmt.Errorf("event without a type")
	}
	if err := e.Stamp.validate(); err != nil {
		return fmt.Errorf("event %q: %w", e.Type, err)
	}
	if len(e.Detail) > MaxDetail || !utf8.ValidString(e.Detail) {
		return fmt.Errorf("event %q: detail of %d bytes, want UTF-8 of at most %d", e.Type, len(e.Detail), MaxDetail)
	}
	if e.Claim != nil {
		if err := names("event's claim", string(e.Claim.Gate)); err != nil {
			return err
		}
	}
	return names("event", string(e.Type), e.Place, e.Lane)
}

// DetailOf makes any text one that an event's detail can hold: what is not UTF-8
// is replaced, and what is too long is cut.
func DetailOf(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxDetail {
		return s
	}
	cut := MaxDetail
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

func (f *Feed) validate() error {
	n := count(f.Revoke != nil, f.Release != nil, f.Distrust != nil, f.Programme != nil,
		f.Codes != nil, f.Closed != nil, f.Gate != nil)
	if n != 1 || f.Subject == "" || f.Version == 0 {
		return fmt.Errorf("feed entry %q version %d has %d contents, want 1", f.Subject, f.Version, n)
	}
	if c := f.Codes; c != nil && (c.Chunk < 0 || c.Chunk >= c.Chunks || len(c.Hashes)%16 != 0) {
		return fmt.Errorf("feed entry %q: chunk %d of %d with %d bytes", f.Subject, c.Chunk, c.Chunks, len(c.Hashes))
	}
	return names("feed", f.texts()...)
}

// texts lists every text of the entry.
func (f *Feed) texts() []string {
	switch {
	case f.Release != nil:
		return []string{f.Subject, string(f.Release.Claim.Gate), f.Release.Unit.Event}
	case f.Distrust != nil:
		return []string{f.Subject, string(f.Distrust.Device), f.Distrust.Reason}
	case f.Codes != nil:
		return []string{f.Subject, f.Codes.Event}
	case f.Closed != nil:
		return []string{f.Subject, f.Closed.Event}
	case f.Gate != nil:
		g := f.Gate
		return []string{f.Subject, string(g.Device), g.Place, g.Key, g.Role, g.State}
	}
	return []string{f.Subject}
}

// names refuses what could not be a key, or what could be encoded and not
// decoded: CBOR texts are UTF-8.
func names(what string, ss ...string) error {
	for _, s := range ss {
		if len(s) > MaxText || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
			return fmt.Errorf("%s: a name of %d bytes, with a zero byte or not UTF-8; want at most %d bytes", what, len(s), MaxText)
		}
	}
	return nil
}

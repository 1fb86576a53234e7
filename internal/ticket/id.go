package ticket

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Source names a writer of records: a gate's device id, "ledger/PROCESS" or
// "http/CALLER". One source writes under one run at a time.
type Source string

// Run is 64 random bits, new at every opening of a store, so that a store that
// was put back from an old copy can never reuse a position.
type Run uint64

// String gives the run as 16 lower-case hex digits.
func (r Run) String() string { return fmt.Sprintf("%016x", uint64(r)) }

// ParseRun reads what String wrote.
func ParseRun(s string) (Run, error) {
	if len(s) != 16 {
		return 0, fmt.Errorf("parse run %q: want 16 lower-case hex digits", s)
	}
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || Run(n).String() != s {
		return 0, fmt.Errorf("parse run %q: want 16 lower-case hex digits", s)
	}
	return Run(n), nil
}

// MarshalText and UnmarshalText let a run stand in JSON as its hex digits.
func (r Run) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Run) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRun(string(b))
	return err
}

// Stream names one run of one source: the unit of contiguous positions.
type Stream struct {
	_      struct{} `cbor:",toarray"`
	Source Source
	Run    Run
}

// ClaimID is the identity of a claim: the source that wrote it, and the run and
// position of its rev 0.
type ClaimID struct {
	_    struct{} `cbor:",toarray"`
	Gate Source
	Run  Run
	Pos  uint64
}

// IsZero reports whether the id names no claim.
func (c ClaimID) IsZero() bool { return c == ClaimID{} }

// String gives GATE/RUN/POS; the gate may itself hold a slash.
func (c ClaimID) String() string {
	if c.IsZero() {
		return ""
	}
	var run [8]byte
	binary.BigEndian.PutUint64(run[:], uint64(c.Run))
	b := make([]byte, 0, len(c.Gate)+38) // the longest
	b = hex.AppendEncode(append(append(b, c.Gate...), '/'), run[:])
	return string(strconv.AppendUint(append(b, '/'), c.Pos, 10))
}

// ParseClaimID reads what String wrote.
func ParseClaimID(s string) (ClaimID, error) {
	bad := func() (ClaimID, error) {
		return ClaimID{}, fmt.Errorf("parse claim %q: want GATE/RUN/POSITION", s)
	}
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return bad()
	}
	pos, err := strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil || pos == 0 || s[i+1] == '0' {
		return bad()
	}
	j := strings.LastIndexByte(s[:i], '/')
	if j <= 0 {
		return bad()
	}
	run, err := ParseRun(s[j+1 : i])
	if err != nil {
		return bad()
	}
	return ClaimID{Gate: Source(s[:j]), Run: run, Pos: pos}, nil
}

// MarshalText lets a claim id stand in JSON as its text; a zero id is empty.
func (c ClaimID) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *ClaimID) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*c = ClaimID{}
		return nil
	}
	*c, err = ParseClaimID(string(b))
	return err
}

// Compare orders claim ids by (gate, run, pos).
func (c ClaimID) Compare(d ClaimID) int {
	return cmp.Or(cmp.Compare(c.Gate, d.Gate), cmp.Compare(c.Run, d.Run), cmp.Compare(c.Pos, d.Pos))
}

// Bytes is the id's form as a key: source, a zero byte, run and position, both
// big-endian.
func (c ClaimID) Bytes() []byte {
	b := append([]byte(c.Gate), 0)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Run))
	return binary.BigEndian.AppendUint64(b, c.Pos)
}

// ClaimIDFromBytes reads what Bytes wrote.
func ClaimIDFromBytes(b []byte) (ClaimID, error) {
	i := bytes.IndexByte(b, 0)
	if i < 1 || len(b) != i+17 {
		return ClaimID{}, fmt.Errorf("parse claim key %x: wrong length", b)
	}
	return ClaimID{
		Gate: Source(b[:i]),
		Run:  Run(binary.BigEndian.Uint64(b[i+1:])),
		Pos:  binary.BigEndian.Uint64(b[i+9:]),
	}, nil
}

// Format tells how a ticket's text was made; it is part of the ticket's
// identity, so that two formats can never share a row.
type Format uint8

// The formats a verifier knows.
const (
	FormatA1   Format = 1 // ours, signed: "A1:" and base45 of a COSE_Sign1 CWT
	FormatCode Format = 2 // any text that is on the event's list of keyed hashes
)

// String gives the name that programmes use.
func (f Format) String() string {
	switch f {
	case FormatA1:
		return "a1"
	case FormatCode:
		return "code"
	}
	return "format-" + strconv.Itoa(int(f))
}

// ID is a ticket's decoded identity within its format: 16 random bytes (a1), or
// the first 16 bytes of the keyed hash of the text (code).
type ID [16]byte

// String gives 32 lower-case hex digits, as verdicts and orders print it.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String wrote.
func ParseID(s string) (id ID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || s != strings.ToLower(s) {
		return ID{}, fmt.Errorf("parse ticket id %q: want 32 lower-case hex digits", s)
	}
	copy(id[:], b)
	return id, nil
}

// MarshalText lets an id stand in JSON as its hex digits.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}

// Unit is what is admitted once. Entry is 0 for a plain ticket; passes and days
// count with it.
type Unit struct {
	_      struct{} `cbor:",toarray"`
	Event  string
	Format Format
	Ticket ID
	Entry  uint32
}

// Key is the unit's form as a key: event, a zero byte, format, ticket and entry
// (big-endian), so that all units of an event share a prefix.
func (u Unit) Key() []byte {
	b := EventPrefix(u.Event)
	b = append(b, byte(u.Format))
	b = append(b, u.Ticket[:]...)
	return binary.BigEndian.AppendUint32(b, u.Entry)
}

// EventPrefix is the prefix of the keys of all units of an event.
func EventPrefix(event string) []byte { return append([]byte(event), 0) }

// UnitFromKey reads what Key wrote.
func UnitFromKey(b []byte) (u Unit, err error) {
	i := bytes.IndexByte(b, 0)
	if i < 0 || len(b) != i+22 {
		return Unit{}, fmt.Errorf("parse unit key %x: wrong length", b)
	}
	u.Event = string(b[:i])
	u.Format = Format(b[i+1])
	copy(u.Ticket[:], b[i+2:])
	u.Entry = binary.BigEndian.Uint32(b[i+18:])
	return u, nil
}

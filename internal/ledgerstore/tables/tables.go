// Package tables is the form in which the rows of the ledger's store travel from one
// kind of store to another, and by which both ends know that nothing was lost: for
// each table its columns, and of its rows a count and a sum.
package tables

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Table is one table with its columns, the key's first.
type Table struct {
	Name    string
	Columns []string
}

// Row is one row, a value for each column: string, []byte, int64, uint64 or bool; nil
// where there is none.
type Row []any

// All gives the tables, in the order in which they are copied.
func All() []Table {
	return []Table{
		{"stream", []string{"source", "run", "high", "top", "head", "base", "lost", "aside"}},
		{"record", []string{"source", "run", "pos", "aside", "raw"}},
		{"claim", []string{"gate", "run", "pos", "event", "format", "ticket", "entry", "record_run", "record_pos", "since", "answer"}},
		{"due", []string{"at", "gate", "run", "pos", "event", "format", "ticket", "entry"}},
		{"subject", []string{"name", "version", "source", "run", "pos"}},
		{"conflict", []string{"id", "at", "event", "state", "body"}},
		{"alarm", []string{"id", "at", "event", "kind", "body"}},
		{"event", []string{"id", "forget", "closed", "pruned", "swept"}},
		{"event_count", []string{"id", "part", "admitted", "conflicts", "alarms", "late"}},
		{"gate", []string{"device", "place", "hello"}},
		{"late", []string{"event", "source", "run", "pos", "raw"}},
		{"office", []string{"kind", "id", "list", "at", "body"}},
		{"seen", []string{"endpoint", "scope", "id", "first_seen", "until", "place", "holder", "fingerprint", "result", "done"}},
	}
}

// Sum tells the content of a table: how many rows, and the sum of their digests,
// whatever their order. The zero value is that of an empty table.
type Sum struct {
	Rows   int
	digest [4]uint64
}

// Add takes a row in. Its values are told apart by type and length, so that no two
// rows have one digest.
func (s *Sum) Add(r Row) error {
	var b []byte
	for i, v := range r {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case string:
			b = append(binary.BigEndian.AppendUint32(append(b, 's'), uint32(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint32(append(b, 'b'), uint32(len(v))), v...)
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
		case uint64:
			b = binary.BigEndian.AppendUint64(append(b, 'u'), v)
		case bool:
			b = append(b, 't', map[bool]byte{true: 1}[v])
		default:
			return fmt.Errorf("sum row: column %d is a %T", i, v)
		}
	}
	d := sha256.Sum256(b)
	for i := range s.digest {
		s.digest[i] += binary.BigEndian.Uint64(d[8*i:])
	}
	s.Rows++
	return nil
}

// String gives the digest in hex.
func (s *Sum) String() string {
	var b []byte
	for _, d := range s.digest {
		b = binary.BigEndian.AppendUint64(b, d)
	}
	return hex.EncodeToString(b[:16])
}

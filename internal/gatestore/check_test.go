package gatestore

import (
	"testing"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// TestCheckFinds: each row that says something else than the records is found.
func TestCheckFinds(t *testing.T) {
	id := ticket.ClaimID{Gate: "a", Pos: 1}
	for name, spoil := range map[string]func(*Store, kv.Tx) error{
		"a cursor behind": func(s *Store, tx kv.Tx) error {
			return putStream(tx, stream{Stream: s.Stream(), have: 1, head: 1})
		},
		"a record gone":      func(s *Store, tx kv.Tx) error { return tx.Delete(bLog, logKey(s.Stream(), 1)) },
		"a record elsewhere": func(s *Store, tx kv.Tx) error { return moved(s, tx) },
		"a claim's row gone": func(s *Store, tx kv.Tx) error { return tx.Delete(bClaims, append(unit(2).Key(), id2(s).Bytes()...)) },
		"a row of an older rev": func(s *Store, tx kv.Tx) error {
			return tx.Put(bClaims, append(unit(1).Key(), id1(s).Bytes()...), logKey(s.Stream(), 1))
		},
		"an open claim missing": func(s *Store, tx kv.Tx) error { return tx.Delete(bOpen, id2(s).Bytes()) },
		"a claim too many open": func(_ *Store, tx kv.Tx) error { return tx.Put(bOpen, id.Bytes(), unit(9).Key()) },
		"a seen row gone":       func(_ *Store, tx kv.Tx) error { return dropSeen(tx) },
	} {
		t.Run(name, func(t *testing.T) {
			mem := kv.NewMem()
			st, err := New(t.Context(), mem, Options{Device: "a"})
			if err != nil {
				t.Fatal(err)
			}
			end(t, st, claim(t, st, unit(1)).Record.Claim.ID, ticket.Admitted)
			claim(t, st, unit(2))
			if err := st.Check(); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := mem.Update(t.Context(), func(tx kv.Tx) error { return spoil(st, tx) }); err != nil {
				t.Fatal(err)
			}
			if err := st.Check(); err == nil {
				t.Error("nothing was found")
			}
		})
	}
}

func id1(s *Store) ticket.ClaimID { return ticket.ClaimID{Gate: "a", Run: s.Run(), Pos: 1} }
func id2(s *Store) ticket.ClaimID { return ticket.ClaimID{Gate: "a", Run: s.Run(), Pos: 3} }

// moved puts the first record where the third stands.
func moved(s *Store, tx kv.Tx) error {
	b, err := tx.Get(bLog, logKey(s.Stream(), 1))
	if err != nil {
		return err
	}
	return tx.Put(bLog, logKey(s.Stream(), 3), b)
}

// dropSeen removes all rows of the seen table, whatever its buckets are called.
func dropSeen(tx kv.Tx) error {
	var keys [][]byte
	err := tx.Scan("seen", nil, nil, func(k, _ []byte) (bool, error) {
		keys = append(keys, k)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := tx.Delete("seen", k); err != nil {
			return err
		}
	}
	return nil
}

// Package gatestore is the gate's store: its own claims and events, what others
// claimed, how far it has read everybody's records, and what must survive a
// restart. Each method is one transaction.
//
// The gate's own log is its queue: reading does not delete, a receipt moves a
// cursor and deletes nothing, and rows go only when an event is closed and
// everything of it is received.
package gatestore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"admitone/internal/kv"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
	"admitone/internal/ticket"
)

// Version is the form of the store, for the file's meta.
const Version = 2

// The buckets and their keys (integers big-endian; STREAM is source, a zero byte
// and the run's 8 bytes; UNIT is ticket.Unit.Key; CLAIM is ticket.ClaimID.Bytes):
//
//	meta      "device" | "mode" | "floor" | "event"  -> text or stamp; "catching" -> "" while it catches up
//	runs      STREAM                  -> have(8) base(8) head(8) opened(8)
//	receipts  STREAM                  -> high(8)
//	log       STREAM pos(8)           -> the record as it was encoded by its source
//	claims    UNIT CLAIM              -> STREAM pos(8): where the highest revision stands in log
//	open      CLAIM                   -> UNIT: own claims that are pending
//	untrusted CLAIM                   -> UNIT: own claims whose clock was not trusted
//	released  CLAIM                   -> rev(4)
//	feeds     subject                 -> version(8) STREAM pos(8)
//	closed    event                   -> "" once the ledger closed it
//	seen…     kvseen's own            -> the ticket rows
const (
	bMeta      = "meta"
	bRuns      = "runs"
	bReceipts  = "receipts"
	bLog       = "log"
	bClaims    = "claims"
	bOpen      = "open"
	bUntrusted = "untrusted"
	bReleased  = "released"
	bFeeds     = "feeds"
	bClosed    = "closed"
)

// policy is the fixed row of the policy table for tickets at a gate: a repeat is
// refused, for the event's life, which ends by record and not by time.
var policy = seen.Policy{Endpoint: "ticket", OnRepeat: seen.Refuse}

// Options of a store.
type Options struct {
	Device ticket.Source     // whose store it is
	NewRun func() ticket.Run // nil: 64 random bits
	Doubt  bool              // the last commit may be missing: what is here is no knowledge yet
}

// Store is an open gate store.
type Store struct {
	kv     kv.Store
	device ticket.Source
	run    ticket.Run
	fresh  bool
}

// OwnerError is returned for the store of another device.
type OwnerError struct{ Have, Want ticket.Source }

// Error says what to do.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("the store belongs to device %s, this is %s: give this device its own data_dir, or move the file away", e.Have, e.Want)
}

// New takes over an open key-value store: it begins a new run, and refuses a
// store of another device with an *OwnerError.
func New(ctx context.Context, s kv.Store, o Options) (*Store, error) {
	if o.NewRun == nil {
		o.NewRun = randomRun
	}
	st := &Store{kv: s, device: o.Device, run: o.NewRun(), fresh: o.Doubt}
	err := s.Update(ctx, func(tx kv.Tx) error {
		was, err := tx.Get(bMeta, []byte("device"))
		if err != nil {
			return err
		}
		switch {
		case was == nil:
			st.fresh = true
			if err := tx.Put(bMeta, []byte("device"), []byte(o.Device)); err != nil {
				return err
			}
		case string(was) != string(o.Device):
			return &OwnerError{ticket.Source(was), o.Device}
		}
		if v, err := tx.Get(bMeta, keyCatching); err != nil {
			return err
		} else if v != nil {
			st.fresh = true
		}
		return st.begin(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("open gate store: %w", err)
	}
	return st, nil
}

// begin makes the row of a new run; a run that is there already would let two
// openings write under one number.
func (s *Store) begin(tx kv.Tx) error {
	all, err := allStreams(tx)
	if err != nil {
		return err
	}
	last := uint64(0)
	for _, st := range all {
		if st.Stream == s.Stream() {
			return fmt.Errorf("run %s exists already", s.run)
		}
		last = max(last, st.opened)
	}
	return putStream(tx, stream{Stream: s.Stream(), opened: last + 1})
}

func randomRun() ticket.Run {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return ticket.Run(binary.BigEndian.Uint64(b[:]))
}

// Run is the run that this opening writes under.
func (s *Store) Run() ticket.Run { return s.run }

// Stream is this gate's present run.
func (s *Store) Stream() ticket.Stream { return ticket.Stream{Source: s.device, Run: s.run} }

// Fresh reports whether the store held nothing when it was opened, may lack its last
// commit, or had not caught up when it was closed: the gate does not know what it
// admitted before.
func (s *Store) Fresh() bool { return s.fresh }

var keyCatching = []byte("catching")

// SetCatchingUp keeps whether the gate still catches up, so that a restart in the
// middle of it is not taken for knowledge.
func (s *Store) SetCatchingUp(ctx context.Context, on bool) error {
	err := s.kv.Update(ctx, func(tx kv.Tx) error {
		if !on {
			return tx.Delete(bMeta, keyCatching)
		}
		return tx.Put(bMeta, keyCatching, []byte{})
	})
	if err != nil {
		return fmt.Errorf("store that the gate catches up: %w", err)
	}
	return nil
}

// Close closes the file.
func (s *Store) Close() error { return s.kv.Close() }

// Saved gives what survived.
func (s *Store) Saved() (out ticket.Saved, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		mode, err := tx.Get(bMeta, []byte("mode"))
		if err != nil {
			return err
		}
		out.Mode = ticket.GateMode(mode)
		event, err := tx.Get(bMeta, []byte("event"))
		if err != nil {
			return err
		}
		out.LastEvent = string(event)
		if out.Floor, err = getFloor(tx); err != nil {
			return err
		}
		if rec, err := feedOf(tx, ticket.ProgrammeSubject); err != nil {
			return err
		} else if rec != nil && rec.Programme != nil {
			out.Programme = rec.Programme.Signed
		}
		if f, err := feedOf(tx, ticket.GateSubject(s.device)); err != nil {
			return err
		} else if f != nil && f.Gate != nil && f.Gate.State == enrolled {
			out.Place = f.Gate.Place
		}
		if out.Closed, err = closedEvents(tx); err != nil {
			return err
		}
		out.Open, err = openClaims(tx)
		return err
	})
	if err != nil {
		return ticket.Saved{}, fmt.Errorf("read gate store: %w", err)
	}
	return out, nil
}

func closedEvents(tx kv.Tx) (out []string, err error) {
	err = tx.Scan(bClosed, nil, nil, func(k, _ []byte) (bool, error) {
		out = append(out, string(k))
		return true, nil
	})
	return out, err
}

func openClaims(tx kv.Tx) ([]ticket.Claim, error) { return listed(tx, bOpen) }

// listed gives the claims that stand in a list bucket (CLAIM -> UNIT).
func listed(tx kv.Tx, bucket string) ([]ticket.Claim, error) {
	var ids, units [][]byte
	err := tx.Scan(bucket, nil, nil, func(k, v []byte) (bool, error) {
		ids, units = append(ids, k), append(units, v)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	var out []ticket.Claim
	for i := range ids {
		rec, err := latest(tx, append(units[i], ids[i]...))
		if err != nil {
			return nil, err
		}
		if rec != nil {
			out = append(out, *rec.Claim)
		}
	}
	return out, nil
}

// SetFloor stores the clock floor.
func (s *Store) SetFloor(ctx context.Context, f ticket.Floor) error {
	err := s.kv.Update(ctx, func(tx kv.Tx) error { return putFloor(tx, f) })
	if err != nil {
		return fmt.Errorf("store clock floor: %w", err)
	}
	return nil
}

// SetLastEvent stores which event was on when the clock could last be trusted.
func (s *Store) SetLastEvent(ctx context.Context, event string) error {
	err := s.kv.Update(ctx, func(tx kv.Tx) error { return tx.Put(bMeta, []byte("event"), []byte(event)) })
	if err != nil {
		return fmt.Errorf("store the last event: %w", err)
	}
	return nil
}

func putFloor(tx kv.Tx, f ticket.Floor) error {
	b := binary.BigEndian.AppendUint64(nil, uint64(f.Wall))
	b = append(b, f.Boot[:]...)
	return tx.Put(bMeta, []byte("floor"), binary.BigEndian.AppendUint64(b, uint64(f.Up)))
}

func getFloor(tx kv.Tx) (f ticket.Floor, err error) {
	b, err := tx.Get(bMeta, []byte("floor"))
	if err != nil || b == nil {
		return f, err
	}
	if len(b) != 32 {
		return f, fmt.Errorf("read clock floor: %d bytes: %w", len(b), kv.ErrCorrupt)
	}
	f.Wall = int64(binary.BigEndian.Uint64(b))
	copy(f.Boot[:], b[8:])
	f.Up = int64(binary.BigEndian.Uint64(b[24:]))
	return f, nil
}

// CodeChunks gives the chunks of an event's code list that are here, of the
// newest version of its first chunk.
func (s *Store) CodeChunks(event string) (chunks []ticket.FeedCodes, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		chunks = nil
		var version uint64
		for i, n := 0, 1; i < n; i++ {
			f, err := feedOf(tx, ticket.CodesSubject(event, i))
			if err != nil {
				return err
			}
			if f == nil || f.Codes == nil || i > 0 && f.Version != version {
				continue
			}
			if i == 0 {
				version, n = f.Version, f.Codes.Chunks
			}
			chunks = append(chunks, *f.Codes)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read code list of %q: %w", event, err)
	}
	return chunks, nil
}

// ticketKey is the row of the seen table that refuses a unit's second admission.
func ticketKey(u ticket.Unit) seen.Key {
	return seen.Key{Endpoint: policy.Endpoint, Scope: u.Event, ID: string(u.Key())}
}

// Row gives the seen row of a unit: when and where it was first presented.
func (s *Store) Row(u ticket.Unit) (row seen.Row, ok bool, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		row, ok, err = kvseen.Bind(tx).Get(ticketKey(u))
		return err
	})
	return row, ok, err
}

// stampTime is a claim's time as rows show it.
func stampTime(c ticket.Claim) time.Time { return c.Claimed.Time() }

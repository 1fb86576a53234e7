package ledger_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"testing"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// deviceKey makes a device's key of its public key's text.
func deviceKey(public string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(public))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (r *rig) take(device ticket.Source, signed []byte) (out ledger.Imported, err error) {
	err = r.Within(context.Background(), func(w *ledger.Within) (err error) {
		out, err = w.Import(device, signed)
		return err
	})
	return out, err
}

// part signs records of a gate, by the key of a public one.
func (r *rig) part(g *gate, public string, n, from, to int) []byte {
	r.t.Helper()
	signed, err := ticket.SignBatch(ticket.Batch{
		Device: g.src, Place: "North", Export: 1, Part: n, Run: g.run, From: uint64(from), Records: g.log[from-1 : to],
	}, deviceKey(public))
	if err != nil {
		r.t.Fatal(err)
	}
	return signed
}

// TestImportIsAnUpload: records that come by hand change what an upload changes, once,
// in whatever order and however often they come, by hand or not.
func TestImportIsAnUpload(t *testing.T) {
	by := func(byHand bool) *rig {
		r := newRig(t)
		if _, err := r.EnrolGate(context.Background(), "North", "UA", ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
		g := newGate("a", r.clock)
		g.run = 99
		fill(g, 5)
		if !byHand {
			r.upload(g, 1)
			return r
		}
		for i, c := range []struct{ from, to, fresh int }{{7, 10, 4}, {1, 6, 6}, {1, 6, 0}, {4, 9, 0}} {
			got, err := r.take("a", r.part(g, "UA", i+1, c.from, c.to))
			if err != nil || got.New != c.fresh || got.Records != c.to-c.from+1 || got.SetAside != 0 {
				t.Errorf("part %d: %+v, %v; want %d new", i+1, got, err, c.fresh)
			}
		}
		before := r.dump()
		r.upload(g, 1)
		if d := ledgertest.Diff(before, r.dump()); d != nil {
			t.Errorf("an upload after it changed %v", d)
		}
		return r
	}
	if d := ledgertest.Diff(by(true).dump(), by(false).dump()); d != nil {
		t.Errorf("imported and uploaded differ in %v", d)
	}
}

// TestImportRefuses: what is not a device's own word changes nothing.
func TestImportRefuses(t *testing.T) {
	r := newRig(t)
	for place, public := range map[string]string{"North": "UA", "South": "UB"} {
		if _, err := r.EnrolGate(context.Background(), place, public, ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
	}
	g := newGate("a", r.clock)
	fill(g, 2)
	before := r.dump()
	good := r.part(g, "UA", 1, 1, 4)
	for name, c := range map[string]struct {
		device ticket.Source
		signed []byte
		want   error
	}{
		"nobody's device":             {"zz", good, ledger.ErrNotFound},
		"another device's":            {"b", good, ledger.ErrInvalid},
		"signed by another device":    {"a", r.part(g, "UB", 1, 1, 4), ledger.ErrInvalid},
		"another's records, own name": {"b", r.part(g, "UB", 1, 1, 4), ledger.ErrInvalid},
		"cut off":                     {"a", good[:len(good)-1], ledger.ErrInvalid},
		"nothing":                     {"a", nil, ledger.ErrInvalid},
	} {
		if _, err := r.take(c.device, c.signed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("they changed %v", d)
	}
}

package broker_test

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"

	"admitone/internal/wire/broker"
)

// TestGateList: a list comes back as it was signed, in one form whatever its
// order; any changed byte, another key and a wrong id are refused.
func TestGateList(t *testing.T) {
	pub, priv, err := ed25519.GenerateKey(nil)
	must(t, err)
	l := broker.GateList{Version: 7, Devices: []broker.Device{newKey(t, broker.RoleGate).device, newKey(t, broker.RoleBroker).device}}
	signed, err := l.Sign(priv)
	must(t, err)
	turned := broker.GateList{Version: 7, Devices: []broker.Device{l.Devices[1], l.Devices[0]}}
	again, err := turned.Sign(priv)
	must(t, err)
	if !bytes.Equal(signed, again) {
		t.Error("the same list has two forms")
	}
	got, err := broker.OpenGateList(signed, pub)
	must(t, err)
	if got.Version != 7 || len(got.Devices) != 2 || !slices.Contains(got.Devices, l.Devices[0]) {
		t.Errorf("got %+v", got)
	}
	for i := range signed {
		bad := slices.Clone(signed)
		bad[i] ^= 1
		if _, err := broker.OpenGateList(bad, pub); err == nil {
			t.Fatalf("byte %d changed, and accepted", i)
		}
	}
	other, _, err := ed25519.GenerateKey(nil)
	must(t, err)
	if _, err := broker.OpenGateList(signed, other); err == nil {
		t.Error("accepted with another's key")
	}
	l.Devices[0].Device = "abcdefghijklmnop"
	if _, err := l.Sign(priv); err == nil {
		t.Error("signed a device with the key of another")
	}
}

// TestOldListChangesNothing: a list that was in force once cannot come back.
func TestOldListChangesNothing(t *testing.T) {
	s := newSite(t)
	b, _ := start(t, s.options("hub"))
	k := s.enrol(t, broker.RoleGate)
	old := s.list(t)
	must(t, b.SetGates(old))
	c := s.dial(t, k, b.URL())
	state := c.Connected()
	await(t, state, true)
	s.devices = nil
	must(t, b.SetGates(s.list(t)))
	await(t, state, false)
	must(t, b.SetGates(old))
	if v := b.Status().ListVersion; v != s.version {
		t.Errorf("list %d in force, want %d", v, s.version)
	}
	if err := b.SetGates([]byte("junk")); err == nil {
		t.Error("junk accepted")
	}
}

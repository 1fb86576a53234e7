package wire_test

import (
	"crypto/ed25519"
	"testing"

	"admitone/internal/wire"
)

// TestDeviceSigns: what a device's seed signs, its public key verifies.
func TestDeviceSigns(t *testing.T) {
	seed, public, err := wire.NewDeviceKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := wire.SigningKey(" " + seed + "\n")
	if err != nil {
		t.Fatal(err)
	}
	verifying, err := wire.VerifyingKey(public)
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(verifying, []byte("x"), ed25519.Sign(private, []byte("x"))) {
		t.Error("the public key does not verify what the seed signed")
	}
	if _, err := wire.SigningKey(public); err == nil {
		t.Error("a public key was taken for a seed")
	}
	if _, err := wire.VerifyingKey(seed); err == nil {
		t.Error("a seed was taken for a public key")
	}
}

package ticket

import (
	"crypto/ed25519"
	"strings"
	"testing"
)

func TestInspect(t *testing.T) {
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("o", ed25519.SeedSize)))
	want := Ticket{Format: FormatA1, ID: ID{1}, Event: "gala", Session: "late", Product: "stalls", Test: true}
	signer := NewSigner(key)
	text, err := signer.Mint(want)
	if err != nil {
		t.Fatal(err)
	}
	u, err := Inspect(text)
	if err != nil || u.Ticket != want || u.KeyID != signer.KeyID() {
		t.Fatalf("%+v, %v", u, err)
	}
	if !u.SignedBy(signer.Public()) {
		t.Error("the signer's own signature is not seen")
	}
	for name, pub := range map[string]ed25519.PublicKey{"another key": other.Public().(ed25519.PublicKey), "no key": nil} {
		if u.SignedBy(pub) {
			t.Errorf("signed by %s", name)
		}
	}
	for _, bad := range []string{"", text + " ", strings.ToLower(text), text[:len(text)-2]} {
		if _, err := Inspect(bad); err == nil {
			t.Errorf("%q is taken for a ticket", bad)
		}
	}
	// Another signature under the same key's name is well formed, and not signed.
	forged := u
	forged.sealed.signature = append([]byte{u.sealed.signature[0] ^ 1}, u.sealed.signature[1:]...)
	if forged.SignedBy(signer.Public()) {
		t.Error("a changed signature is taken")
	}
}

package ticket

import (
	"bytes"
	"crypto/ed25519"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veraison/go-cose"
)

func TestProgrammeTravels(t *testing.T) {
	s := signerOf(5)
	want := fair()
	want.Events[0].Open = want.Events[0].Open.In(time.FixedZone("CEST", 2*3600))
	signed, err := SignProgramme(want, s.priv)
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenProgramme(signed, s.Public())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, fair()) {
		t.Errorf("got  %+v\nwant %+v", got, fair())
	}
	again, err := SignProgramme(got, s.priv)
	if err != nil || !bytes.Equal(again, signed) {
		t.Errorf("signed again: %x, %v\nwant %x", again, err, signed)
	}
}

func TestOpenProgrammeIsStrict(t *testing.T) {
	s := signerOf(5)
	good, err := SignProgramme(fair(), s.priv)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		c := slices.Clone(good)
		c[i] ^= 1
		if p, err := OpenProgramme(c, s.Public()); err == nil {
			t.Fatalf("byte %d changed: %+v", i, p)
		}
	}
	payload, err := OpenDocument(programmeKind, good, s.Public())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(kind string, payload []byte) []byte {
		b, err := SignDocument(kind, payload, s.priv)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	invalid := fair()
	invalid.Events[0].Formats = nil
	bad, err := encMode.Marshal(invalid)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := seal("", payload, s.priv)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"empty":           {},
		"trailing byte":   append(slices.Clone(good), 0),
		"cut off":         good[:len(good)-1],
		"another kind":    sign("application/x-else", payload),
		"no kind":         bare,
		"tagged":          append([]byte{0xd2}, good...),
		"trailing claims": sign(programmeKind, append(slices.Clone(payload), 0)),
		"long integer":    sign(programmeKind, bytes.Replace(payload, []byte{0xa2, 0x01, 0x07}, []byte{0xa2, 0x01, 0x18, 0x07}, 1)),
		"unknown field":   sign(programmeKind, append(append([]byte{0xa3}, payload[1:]...), 0x09, 0x01)),
		"invalid":         sign(programmeKind, bad),
		"huge":            sign(programmeKind, make([]byte, MaxProgramme)),
	} {
		if p, err := OpenProgramme(b, s.Public()); err == nil {
			t.Errorf("%s: opened as %+v", name, p)
		}
	}
	if _, err := OpenProgramme(good, signerOf(6).Public()); err == nil || !strings.Contains(err.Error(), signerOf(6).KeyID()) {
		t.Errorf("another key: %v", err)
	}
	if _, err := OpenProgramme(good, nil); err == nil {
		t.Error("opened without a key")
	}
	if _, err := SignProgramme(invalid, s.priv); err == nil {
		t.Error("signed an invalid programme")
	}
}

func TestDocuments(t *testing.T) {
	s := signerOf(5)
	signed, err := SignDocument("application/x-list", []byte("payload"), s.priv)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := OpenDocument("application/x-list", signed, s.Public()); err != nil || string(got) != "payload" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := OpenDocument("application/x-other", signed, s.Public()); err == nil {
		t.Error("opened as another kind")
	}
	if _, err := SignDocument("", nil, s.priv); err == nil {
		t.Error("signed a document of no kind")
	}
	if _, err := SignDocument("application/x-list", []byte("payload"), s.priv[:32]); err == nil {
		t.Error("signed with half a key")
	}
	// Another COSE implementation reads it as it stands.
	var m cose.UntaggedSign1Message
	if err := m.UnmarshalCBOR(signed); err != nil {
		t.Fatal(err)
	}
	v, err := cose.NewVerifier(cose.AlgorithmEdDSA, s.Public())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(nil, v); err != nil {
		t.Error(err)
	}
}

// A ticket is no document and a document no ticket, under the same key.
func TestKindsDoNotMix(t *testing.T) {
	s := signerOf(1)
	b, err := decodeBase45(mint(t, s, galaTicket())[len(a1Prefix):])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDocument(programmeKind, b, s.Public()); err == nil {
		t.Error("a ticket opens as a programme")
	}
	claims, err := encodeClaims(galaTicket())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := SignDocument("application/x-k", claims, s.priv)
	if err != nil {
		t.Fatal(err)
	}
	if _, reason := fairVerifier(t).Read(a1Prefix + encodeBase45(doc)); reason != Invalid {
		t.Errorf("a document with a ticket's claims is %s", reason)
	}
}

func TestKeyFiles(t *testing.T) {
	priv := signerOf(4).priv
	pub := signerOf(4).Public()
	private, err := FormatPrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	public, err := FormatPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParsePrivateKey(private); err != nil || !got.Equal(priv) {
		t.Errorf("got %x, %v", got, err)
	}
	if got, err := ParsePublicKey(public); err != nil || !got.Equal(pub) {
		t.Errorf("got %x, %v", got, err)
	}
	const ec = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n" +
		"6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n"
	for name, file := range map[string][]byte{
		"empty": {}, "text": []byte("hello"), "public as private": public, "twice": append(slices.Clone(private), private...),
		"text before": append([]byte("x\n"), private...), "text after": append(slices.Clone(private), "x"...), "cut off": private[:40],
		"broken": bytes.Replace(private, []byte("MC4C"), []byte("MC4D"), 1),
	} {
		if _, err := ParsePrivateKey(file); err == nil {
			t.Errorf("%s is a private key", name)
		}
	}
	for name, file := range map[string][]byte{"empty": {}, "private as public": private, "P-256": []byte(ec), "text after": append(slices.Clone(public), "x"...)} {
		if _, err := ParsePublicKey(file); err == nil {
			t.Errorf("%s is a public key", name)
		}
	}
	if _, err := FormatPrivateKey(priv[:32]); err == nil {
		t.Error("formatted half a private key")
	}
	if _, err := FormatPublicKey(ed25519.PublicKey(pub[:31])); err == nil {
		t.Error("formatted a part of a public key")
	}
	if got := ProgrammeKeyOf(pub, true); got.ID != KeyID(pub) || len(got.ID) != 8 || len(got.Public) != 64 || !got.Demo {
		t.Errorf("got %+v", got)
	}
}

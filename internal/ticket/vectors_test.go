package ticket

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// The vectors in testdata/vectors are for other implementations; their README
// says what each field is. They are written by `go test ./internal/ticket -run
// Vectors -update` and come out the same every time: the keys are fixed and
// Ed25519 is deterministic.
var update = flag.Bool("update", false, "write testdata/vectors anew")

var vectorDir = filepath.Join("..", "..", "testdata", "vectors")

type vectorKey struct {
	Name   string `json:"name"`
	Seed   string `json:"seed"`
	Public string `json:"public"`
	ID     string `json:"id"`
}

type vectorTicket struct {
	ID        ID     `json:"id"`
	Event     string `json:"event"`
	Session   string `json:"session"`
	Zone      string `json:"zone"`
	Product   string `json:"product"`
	NotBefore int64  `json:"not_before"`
	Expires   int64  `json:"expires"`
	Test      bool   `json:"test"`
	Entry     uint32 `json:"entry"`
}

func (v vectorTicket) ticket() Ticket {
	at := func(n int64) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return time.Unix(n, 0).UTC()
	}
	return Ticket{
		Format: FormatA1, ID: v.ID, Event: v.Event, Session: v.Session, Zone: v.Zone, Product: v.Product,
		NotBefore: at(v.NotBefore), Expires: at(v.Expires), Test: v.Test, Entry: v.Entry,
	}
}

type vectorValid struct {
	Name   string       `json:"name"`
	Key    string       `json:"key"`
	Ticket vectorTicket `json:"ticket"`
	Claims string       `json:"claims"`
	COSE   string       `json:"cose"`
	Text   string       `json:"text"`
}

type vectorInvalid struct {
	Name   string `json:"name"`
	Text   string `json:"text"`
	Reason Reason `json:"reason"`
	Why    string `json:"why"`
}

type vectorCode struct {
	Event string `json:"event"`
	Key   string `json:"key"`
	Text  string `json:"text"`
	Hash  ID     `json:"hash"`
}

type vectorProgramme struct {
	Key       string    `json:"key"`
	Programme Programme `json:"programme"`
	Payload   string    `json:"payload"`
	Signed    string    `json:"signed"`
}

type vectors struct {
	keys      []vectorKey
	valid     []vectorValid
	invalid   []vectorInvalid
	codes     []vectorCode
	programme vectorProgramme
}

// files names the parts of the vectors, for reading and for writing.
func (v *vectors) files() map[string]any {
	return map[string]any{
		"keys.json": &v.keys, "tickets.json": &v.valid, "refused.json": &v.invalid, "codes.json": &v.codes,
		"programme.json": &v.programme,
	}
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	var v vectors
	for name, part := range v.files() {
		b, err := os.ReadFile(filepath.Join(vectorDir, name))
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(part); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return v
}

// The stored vectors are what the generator gives, byte for byte.
func TestVectorsAreCurrent(t *testing.T) {
	v := makeVectors(t)
	for name, part := range v.files() {
		want, err := json.MarshalIndent(part, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		path := filepath.Join(vectorDir, name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator gives (%v): run with -update and look at the difference", name, err)
		}
	}
}

// The stored vectors hold, read by nothing but the public API.
func TestVectorsHold(t *testing.T) {
	v := readVectors(t)
	signers := map[string]Signer{}
	for _, k := range v.keys {
		seed, err := hex.DecodeString(k.Seed)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSigner(ed25519.NewKeyFromSeed(seed))
		signers[k.Name] = s
		if s.KeyID() != k.ID || hex.EncodeToString(s.Public()) != k.Public {
			t.Errorf("key %s: id %s, public %x", k.Name, s.KeyID(), s.Public())
		}
	}
	signed, err := hex.DecodeString(v.programme.Signed)
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenProgramme(signed, signers[v.programme.Key].Public())
	if err != nil || !reflect.DeepEqual(p, v.programme.Programme) {
		t.Errorf("programme: %v\ngot  %+v\nwant %+v", err, p, v.programme.Programme)
	}
	lists := map[string][]ID{}
	for _, c := range v.codes {
		key, err := hex.DecodeString(c.Key)
		if err != nil || CodeHash(key, c.Text) != c.Hash {
			t.Errorf("code %q: %s, %v, want %s", c.Text, CodeHash(key, c.Text), err, c.Hash)
		}
		lists[c.Event] = append(lists[c.Event], c.Hash)
	}
	codes := map[string]CodeList{}
	for event, ids := range lists {
		codes[event] = NewCodeList(ids)
	}
	verifier, err := NewVerifier(p, codes, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range v.valid {
		got, reason := verifier.Read(want.Text)
		if reason != OK || got != want.Ticket.ticket() {
			t.Errorf("%s: %s %+v, want %+v", want.Name, reason, got, want.Ticket)
		}
		if text, err := signers[want.Key].Mint(want.Ticket.ticket()); err != nil || text != want.Text {
			t.Errorf("%s: minted %q, %v, want %q", want.Name, text, err, want.Text)
		}
	}
	for _, want := range v.invalid {
		if got, reason := verifier.Read(want.Text); reason != want.Reason {
			t.Errorf("%s: %s %+v, want %s: %s", want.Name, reason, got, want.Reason, want.Why)
		}
	}
	for _, c := range v.codes {
		if got, reason := verifier.Read(c.Text); reason != OK || got.ID != c.Hash || got.Event != c.Event || got.Format != FormatCode {
			t.Errorf("code %q: %s %+v", c.Text, reason, got)
		}
	}
}

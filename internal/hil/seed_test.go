//go:build hil

package hil

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
	"time"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/gatestore"
	"admitone/internal/pictures"
	"admitone/internal/qr"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

const (
	event = "rehearsal"
	place = "North"
)

// cards is how many tickets a board's test may use.
const cards = 16

// identity is a gate that was enrolled and had its programme, and is cut off since.
type identity struct {
	device ticket.Source
	signer ticket.Signer
	files  map[string]Content // of a board that is this gate
	cards  []card             // not shown yet
}

// newIdentity makes the keys, the enrolment, and the store as a ledger would have
// left it: with a programme, and with the last time that was trusted, for boards
// wake up in 1970.
func newIdentity(t *testing.T) *identity {
	t.Helper()
	_, programmeKey := keyPair(t)
	_, ticketKey := keyPair(t)
	seed, public, err := wire.NewDeviceKey()
	if err != nil {
		t.Fatal(err)
	}
	id := &identity{signer: ticket.NewSigner(ticketKey), files: map[string]Content{}}
	if id.device, err = wire.DeviceID(public); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	enrolment := filepath.Join(dir, "enrolment.toml")
	err = config.WriteEnrolment(enrolment, config.Enrolment{
		Seed: seed, Place: place, Brokers: []string{"nats://127.0.0.1:4222"},
		ProgrammeKey: hex.EncodeToString(programmeKey.Public().(ed25519.PublicKey)), Issued: time.Now().UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "gate.db")
	id.fillStore(t, db, programmeKey)
	for name, path := range map[string]string{"etc/gated/enrolment.toml": enrolment, "data/gate.db": db} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		id.files[name] = Content{0o600, b}
	}
	id.files[hall] = Content{0o644, picture(t, "", 0)}
	id.files[night] = Content{0o644, picture(t, "", 1)}
	for i := range cards {
		id.cards = append(id.cards, id.mint(t, i))
	}
	return id
}

func keyPair(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pub, priv
}

func (id *identity) fillStore(t *testing.T, path string, programmeKey ed25519.PrivateKey) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	signed, err := ticket.SignProgramme(ticket.Programme{Version: 1, Events: []ticket.ProgrammeEvent{{
		ID: event, Open: now.Add(-24 * time.Hour), Close: now.Add(24 * time.Hour), Forget: now.Add(48 * time.Hour),
		Formats: []string{ticket.FormatA1.String()}, Keys: []ticket.ProgrammeKey{ticket.ProgrammeKeyOf(id.signer.Public(), false)},
	}}}, programmeKey)
	if err != nil {
		t.Fatal(err)
	}
	r := ticket.Record{Source: "ledger", Run: 1, Pos: 1, Feed: &ticket.Feed{
		Subject: ticket.ProgrammeSubject, Version: 1, At: now.UnixNano(), Programme: &ticket.FeedProgramme{Signed: signed}}}
	raw, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	store := id.open(t, path)
	_, err = store.Learn(t.Context(), []ticket.Arrival{{Stream: r.Stream(), Pos: r.Pos, Raw: raw, Record: &r}})
	err = errors.Join(err,
		store.SetLastEvent(t.Context(), event),
		store.SetFloor(t.Context(), ticket.Floor{Wall: now.UnixNano()}),
		store.Close())
	if err != nil {
		t.Fatal(err)
	}
}

func (id *identity) open(t *testing.T, path string) *gatestore.Store {
	t.Helper()
	file, err := boltfile.Open(t.Context(), path, boltfile.Options{Name: "gate", Version: gatestore.Version})
	if err != nil {
		t.Fatal(err)
	}
	store, err := gatestore.New(t.Context(), file, gatestore.Options{Device: id.device})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// A card is a ticket that nobody has used, with what a camera sees of it.
type card struct {
	ticket.Ticket
	path string // of its picture on the board
}

// Pictures on the board: an empty lane, and one at night.
const (
	hall  = "/pictures/hall.jpg"
	night = "/pictures/night.jpg"
)

// mint makes a ticket and puts its picture among the files: a console is too slow
// for pictures.
func (id *identity) mint(t *testing.T, n int) card {
	t.Helper()
	c := card{ticket.Ticket{Format: ticket.FormatA1, Event: event}, fmt.Sprintf("/pictures/%d.jpg", n)}
	rand.Read(c.ID[:])
	text, err := id.signer.Mint(c.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	id.files[c.path] = Content{0o644, picture(t, text, 0)}
	return c
}

// The size of the picture that the virtual camera has at first.
const (
	width  = 1280
	height = 720
)

// picture draws what the camera sees: somebody's phone with a ticket on it, or,
// without a text, the hall. Dim is 1 at night.
func picture(t *testing.T, text string, dim float64) []byte {
	t.Helper()
	s := pictures.Spec{Seed: 1, Width: width, Height: height, Dim: dim}
	if text != "" {
		symbol, _, err := qr.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Held = []pictures.Held{{Symbol: symbol, Module: 7, Turn: 4}}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, pictures.Draw(s), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

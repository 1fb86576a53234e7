package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image/jpeg"

	"admitone/internal/pictures"
	"admitone/internal/qr"
	"admitone/internal/ticket"
)

// Kind is what a picture of the demonstration is there to show.
type Kind string

// The kinds.
const (
	New       Kind = "new"         // a ticket that was not shown before
	Repeat    Kind = "repeat"      // a ticket that an earlier picture showed
	Family    Kind = "family"      // one of four tickets of one order
	BothGates Kind = "both_gates"  // a ticket that is shown to two gates at once: one of them refuses it
	TwoPhones Kind = "two_phones"  // two tickets in one picture
	Expired   Kind = "expired"     // a ticket whose time is over
	Other     Kind = "other_event" // a ticket of an event that is not on
	Junk      Kind = "junk"        // a QR code that is no ticket
	Nothing   Kind = "nothing"     // no QR code
)

// Frame is one picture of the demonstration: an entry of frames.json. In the order
// of their names, shown to their gates, the pictures give the reasons they name.
type Frame struct {
	File    string          `json:"file"` // name within testdata/frames
	Kind    Kind            `json:"kind"`
	Gates   []int           `json:"gates"`   // who is shown it, 1 or 2
	Texts   []string        `json:"texts"`   // of its QR codes, in no order
	Reasons []ticket.Reason `json:"reasons"` // for each text; for both_gates at the gate that wins

	// Drawn is the first 8 bytes of the SHA-256 of the spec's JSON, in hex: it tells
	// a picture that was not drawn anew after its spec changed.
	Drawn string `json:"drawn"`

	Spec pictures.Spec `json:"-"`
}

// JPEG draws the picture as the file's contents.
func (f Frame) JPEG() ([]byte, error) {
	var b bytes.Buffer
	// A webcam's MJPEG is of about this quality.
	if err := jpeg.Encode(&b, pictures.Draw(f.Spec), &jpeg.Options{Quality: 80}); err != nil {
		return nil, fmt.Errorf("draw %s: %w", f.File, err)
	}
	return b.Bytes(), nil
}

// Index gives the contents of frames.json.
func Index(frames []Frame) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(frames)
	return b.Bytes(), err
}

// Frames are the pictures of the demonstration in the order in which they are
// shown.
func Frames() ([]Frame, error) {
	b := builder{signer: ticket.NewSigner(Key())}
	b.tickets()
	b.refusals()
	b.last()
	for i := range b.frames {
		f := &b.frames[i]
		spec, err := json.Marshal(f.Spec)
		b.keep(err)
		hash := sha256.Sum256(spec)
		f.Drawn = hex.EncodeToString(hash[:8])
	}
	return b.frames, b.err
}

// builder makes frames one after another; after an error it only keeps that.
type builder struct {
	signer ticket.Signer
	frames []Frame
	err    error
}

// look is how a thing is held, by the numbers of pictures.Held.
type look struct {
	on                    pictures.Medium
	x, y, px, tilt, turn  float64
	dim, blur, move, lamp float64
	noise                 float64
	title                 string
}

func (l look) held(symbol [][]bool) pictures.Held {
	return pictures.Held{
		Symbol: symbol, On: l.on, Title: l.title, X: l.x, Y: l.y, Module: l.px, Tilt: l.tilt, Turn: l.turn,
	}
}

// add makes a frame of one thing with one text, or with none; a look without a
// size is at an empty lane.
func (b *builder) add(name string, kind Kind, reason ticket.Reason, text string, l look, gates ...int) {
	var symbol [][]bool
	f := Frame{File: b.name(name), Kind: kind, Gates: gates, Texts: []string{}, Reasons: []ticket.Reason{}}
	if text != "" {
		symbol = b.symbol(text)
		f.Texts, f.Reasons = []string{text}, []ticket.Reason{reason}
	}
	f.Spec = b.spec(l)
	if l.px > 0 {
		f.Spec.Held = []pictures.Held{l.held(symbol)}
	}
	b.frames = append(b.frames, f)
}

func (b *builder) name(s string) string { return fmt.Sprintf("%02d-%s.jpg", len(b.frames)+1, s) }

func (b *builder) spec(l look) pictures.Spec {
	return pictures.Spec{
		Seed: uint64(len(b.frames) + 1), Dim: l.dim, Blur: l.blur, Motion: l.move, Glare: l.lamp, Noise: l.noise,
	}
}

func (b *builder) mint(t ticket.Ticket) string {
	text, err := b.signer.Mint(t)
	b.keep(err)
	return text
}

func (b *builder) symbol(text string) [][]bool {
	modules, _, err := qr.Encode(text)
	b.keep(err)
	return modules
}

func (b *builder) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

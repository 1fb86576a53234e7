// Package pictures draws what a gate's camera sees: a ticket's QR symbol on a
// phone or on creased paper, held by a hand, aslant, blurred, moved, in glare or
// dim light, with noise, before a hall out of focus.
//
// A picture is a function of its Spec. On one kind of processor it is the same to
// the last bit; between kinds that fuse multiplications and additions differently,
// a pixel may be off by one.
package pictures

import (
	"image"
	"math"
	"math/rand/v2"
)

// Spec says what to draw. The zero values of its numbers are the easiest picture.
type Spec struct {
	Seed          uint64 // decides all that is not said here: the hall, hands, creases, directions, noise
	Width, Height int    // pixels; 640 x 480 where zero
	Held          []Held // later ones are in front; none is an empty lane

	Dim    float64 // of the hall's light: 0 is full light, 1 is none; phones shine on
	Blur   float64 // standard deviation of the lens's blur, pixels
	Motion float64 // length of the movement while the shutter is open, pixels
	Glare  float64 // of a lamp in the glass or on the paper: 0 none to 1 white
	Noise  float64 // standard deviation, grey levels of 255
}

// Medium is what a symbol is shown on.
type Medium uint8

// The media.
const (
	Phone     Medium = iota // a lit screen, dark on light
	DarkPhone               // a phone in dark mode: light modules on a dark ground
	Paper                   // printed, folded and carried in a pocket
)

// Held is one thing that is held up to the camera.
type Held struct {
	Symbol [][]bool // rows of modules, true is dark, without the quiet zone; none: a thing that is no ticket
	On     Medium
	Title  string // printed above the symbol, in ASCII

	X, Y   float64 // of the symbol's middle from the frame's, in frame widths and heights
	Module float64 // size of a module in the picture, pixels; 5 where zero
	Tilt   float64 // out of the picture's plane, degrees below 60; the seed gives the direction
	Turn   float64 // in the picture's plane, degrees clockwise

	Moire   float64 `json:",omitempty"` // beats between screen and sensor: 0 none to 1 down to black
	Cracks  int     `json:",omitempty"` // in the glass, from where it was hit
	Covered float64 `json:",omitempty"` // by a thumb: how far over the symbol it reaches, 0 to 1 of its side
}

const (
	defaultWidth  = 640 // pixels
	defaultHeight = 480
	defaultModule = 5.0 // pixels

	samples = 2 // a side: each pixel of a held thing is the mean of samples squared
)

// Draw draws the picture.
func Draw(s Spec) *image.Gray {
	if s.Width == 0 {
		s.Width = defaultWidth
	}
	if s.Height == 0 {
		s.Height = defaultHeight
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0x61646d69746f6e65))
	ambient := 1 - s.Dim
	p := newPlane(s.Width, s.Height)
	newHall(rng).fill(p, ambient)
	for _, h := range s.Held {
		newHolding(h, s, rng).paint(p, ambient)
	}
	p.blur(s.Blur)
	p.smear(s.Motion, rng.Float64()*math.Pi)
	return p.expose(s.Noise, rng)
}

// plane is a picture in linear light: 0 is black, 1 is white paper in full light.
type plane struct {
	w, h int
	pix  []float32
}

func newPlane(w, h int) *plane { return &plane{w: w, h: h, pix: make([]float32, w*h)} }

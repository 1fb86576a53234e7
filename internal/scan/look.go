package scan

import (
	"slices"

	"github.com/makiuchi-d/gozxing/qrcode/decoder"
)

const (
	// maxFinders bounds the finders that a look takes up: a wallpaper of them before
	// the camera must cost no more than a crowd of phones.
	maxFinders = 192
	// maxTriples bounds how many triples of finders are ranked.
	maxTriples = 4096
)

// look is one attempt at a frame at a time, with memory that is kept between them.
type look struct {
	levels   levels
	compass  compass
	patterns [41]pattern
	decoder  *decoder.Decoder
	darkOnly bool // no light codes on dark

	// Of the attempt:
	pic    *picture
	limits *thresholds
	bits   bitmap
	area   rect    // of the frame
	scale  float64 // pixels of the frame for one of the picture

	finders []finder
	reaches []reach
	found   []triple
	tried   []guess

	// Of the symbol that is tried:
	sign  float64 // -1 for light on dark
	clip  float64 // grey levels, see contrast
	nodes []node
	off   []vec
	grid  grid

	// Of the frame:
	texts []string
	last  rect // about the symbol that was read last, in the frame
	work  int
	most  int // for the frame
	share int // for what one attempt found
	limit int // of the attempt
}

func newLook() *look { return &look{compass: newCompass(), decoder: decoder.NewDecoder()} }

// begin turns to another frame.
func (l *look) begin(f Frame, darkOnly bool) {
	l.levels.begin(f)
	l.texts, l.work, l.darkOnly = nil, 0, darkOnly
	l.most = most(f.W * f.H)
}

func (l *look) spend(n int) { l.work += n }

func (l *look) over() bool { return l.work > l.limit }

// read looks at a part of the frame in one way and adds the texts that it finds.
func (l *look) read(g rung, area rect) {
	l.levels.work = 0
	at := l.levels.of(g, area)
	l.spend(l.levels.work)
	if at == nil || !at.limits.set(g.radius, g.least) {
		return
	}
	l.pic, l.limits, l.area, l.scale = &at.pic, &at.limits, area, float64(g.scale)
	if g.scale < 0 {
		l.scale = -1 / float64(g.scale)
	}
	l.limits.binarise(l.pic, &l.bits)
	l.spend(l.pic.w * l.pic.h * binarising / 8)
	l.search(2)
	triples := l.triples()
	l.limit = min(l.work+l.share, l.most)
	for _, t := range triples {
		if l.over() {
			return
		}
		if t.a.used || t.b.used || t.c.used {
			continue
		}
		if text, ok := l.symbol(t); ok {
			l.take(t, text)
		}
	}
}

// take keeps a text, and leaves the finders within its symbol out from now on.
func (l *look) take(t triple, text string) {
	if !slices.Contains(l.texts, text) {
		l.texts = append(l.texts, text)
	}
	a, u, v := t.a.middle(), t.b.middle().sub(t.a.middle()), t.c.middle().sub(t.a.middle())
	for i := range l.finders {
		f := &l.finders[i]
		d := f.middle().sub(a)
		x, y := d.cross(v)/u.cross(v), u.cross(d)/u.cross(v)
		f.used = f.used || x > -0.1 && x < 1.1 && y > -0.1 && y < 1.1
	}
	// Twice the symbol's size, for the hand that moves it.
	middle, r := a.add(u.add(v).times(0.5)), u.add(v).length()
	w, h := l.levels.whole[0].pic.w, l.levels.whole[0].pic.h
	side := func(at, off float64, from, most int) int {
		return min(max(from+int((at+off)*l.scale), 0), most)
	}
	l.last = rect{
		side(middle.x, -r, l.area.x0, w), side(middle.y, -r, l.area.y0, h),
		side(middle.x, r, l.area.x0, w), side(middle.y, r, l.area.y0, h),
	}
}

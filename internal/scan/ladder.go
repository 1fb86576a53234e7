package scan

// rung is one way to look at a frame.
type rung struct {
	scale  int    // 1, 2, 4: divided by it; -2: twice as large
	radius int    // of the thresholds' windows, blocks
	least  uint32 // contrast, grey levels
	smooth bool   // blurred lightly before
	tile   int    // 1 to 4: of the overlapping quarters of the frame, that one alone
}

// first is what each frame gets. It reads most of what can be read.
var first = rung{scale: 1, radius: 2, least: 20}

// cheap are for what is large or noisy, each a fraction of the first.
var cheap = [...]rung{
	{scale: 2, radius: 2, least: 16},
	{scale: 4, radius: 2, least: 16},
}

// dear take turns from frame to frame: small windows between lights, large ones
// for huge modules, a blur against grain, low contrast in the dark, and twice the
// size for tiny modules.
var dear = [...]rung{
	{scale: 1, radius: 1, least: 16},
	{scale: 2, radius: 6, least: 12},
	{scale: 1, radius: 6, least: 16},
	{scale: 1, radius: 3, least: 7, smooth: true},
	{scale: -2, radius: 2, least: 16, tile: 1},
	{scale: -2, radius: 2, least: 16, tile: 2},
	{scale: -2, radius: 2, least: 16, tile: 3},
	{scale: -2, radius: 2, least: 16, tile: 4},
	{scale: 2, radius: 3, least: 4, smooth: true},
	{scale: 4, radius: 15, least: 8},
}

// Work is counted in units of about a nanosecond on a fast processor. It is
// counted and not measured, so that what is read depends on the frames alone.
const (
	perPixel  = 1 // of measuring and binarising
	halving   = 1 // a pixel of the result
	smoothing = 2
	doubling  = 1

	tries      = 3 << 20 // what an attempt may spend on what it found
	most       = 8 << 20 // what a frame may take
	mostCredit = 6       // times the frame's pixels
	memory     = 8       // frames that a finding is remembered
)

// area is the part of the frame that a rung looks at.
func (g rung) area(w, h int) rect {
	r := rect{0, 0, w, h}
	if g.tile > 0 {
		if (g.tile-1)%2 == 0 {
			r.x1 = w * 5 / 8
		} else {
			r.x0 = w * 3 / 8
		}
		if (g.tile-1)/2 == 0 {
			r.y1 = h * 5 / 8
		} else {
			r.y0 = h * 3 / 8
		}
	}
	return r
}

// cost is what looking at a part of a frame takes before anything is decoded.
func (g rung) cost(part rect) int {
	n := part.w() * part.h()
	switch {
	case g.scale < 0:
		n *= 4 * (perPixel + doubling)
	case g.scale > 1:
		n = n / g.scale / g.scale * (perPixel + halving)
	}
	if g.smooth {
		n *= 1 + smoothing
	}
	return n
}

// ladder is the state of the attempts between frames.
type ladder struct {
	next   int // of the dear rungs
	credit int // work that is left for them
	held   held
}

// held is what was found last in another way than the first.
type held struct {
	rung  rung
	place rect
	left  int // frames until it is forgotten
}

// climb reads a frame: what was found last first, where and how it was found; then
// the whole frame; and where that shows nothing, the other rungs as far as three
// times the work of the first goes. What is left of that is credit for dear ones.
func (r *Reader) climb(f Frame) []string {
	l := r.look
	l.begin(f, r.opts.LightOnly)
	if r.held.left > 0 {
		r.held.left--
		r.attempt(r.held.rung, r.held.place)
	}
	whole := rect{0, 0, f.W, f.H}
	before := l.work
	r.attempt(first, whole)
	one := l.work - before
	if len(l.texts) > 0 {
		return l.texts
	}
	for _, g := range cheap {
		if g.cost(whole) < before+2*one-l.work {
			r.attempt(g, whole)
		}
		if len(l.texts) > 0 {
			return l.texts
		}
	}
	r.credit = min(r.credit+before+3*one-l.work, mostCredit*f.W*f.H)
	for range dear {
		g := dear[r.next%len(dear)]
		area := g.area(f.W, f.H)
		if g.cost(area) > r.credit || l.work+g.cost(area) > most {
			break
		}
		r.next++
		before = l.work
		r.attempt(g, area)
		r.credit -= l.work - before
		if len(l.texts) > 0 {
			break
		}
	}
	return l.texts
}

// attempt looks at a part of the frame in one way, and remembers it if it is not
// the first and finds something.
func (r *Reader) attempt(g rung, area rect) {
	l := r.look
	found := len(l.texts)
	if l.read(g, area); len(l.texts) > found && g != first {
		r.held = held{rung: g, place: l.last, left: memory}
	}
}

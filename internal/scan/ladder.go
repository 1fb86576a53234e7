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
	measuring  = 3 // each eight pixels
	binarising = 5 // likewise
	halving    = 1 // each pixel of the result
	smoothing  = 2
	doubling   = 1

	mostCredit = 6 // times the frame's pixels
	mostDebt   = 1 // likewise: what is found may take more than was planned
	memory     = 8 // frames that a finding is remembered
)

// most is what a frame may take. What is begun within it is ended, which may take
// half as much again.
func most(pixels int) int { return 4*pixels + 7<<19 }

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

// cost is what looking at a part of a frame takes before anything is found.
func (g rung) cost(part rect) int {
	n := part.w() * part.h()
	each := (measuring + binarising) / 8
	switch {
	case g.scale < 0:
		n, each = 4*n, each+doubling
	case g.scale > 1:
		n, each = n/g.scale/g.scale, each+halving
	}
	if g.smooth {
		each += smoothing
	}
	return n * each
}

// ladder is the state of the attempts between frames.
type ladder struct {
	next   int // of the dear rungs
	credit int // work that is left for them
	turn   int // frames since one showed something
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
//
// A frame full of what might be codes takes all of its budget for the first look. So
// while nothing is found that gets half of it in one frame, all of it in the next,
// and little in a third, which is for the dear ones.
func (r *Reader) climb(f Frame) []string {
	l, whole := r.look, rect{0, 0, f.W, f.H}
	l.begin(f, r.opts.LightOnly)
	if l.share = l.most / 2; r.held.left > 0 {
		r.held.left--
		r.attempt(r.held.rung, r.held.place)
	}
	turn := r.turn % 3
	r.turn++
	before := l.work
	l.share = l.most / [...]int{2, 1, 6}[turn]
	if r.attempt(first, whole) {
		r.turn = 0
		return l.texts
	}
	one := l.work - before
	l.share = l.most / 2
	if one <= measuring*f.W*f.H/8 {
		r.credit += one / 4 // nothing stands out: what is faint may come in time
	} else {
		for _, g := range cheap {
			if turn < 2 && g.cost(whole) < before+2*one-l.work && r.attempt(g, whole) {
				return l.texts
			}
		}
		r.credit += before + 3*one - l.work
	}
	r.credit = min(r.credit, mostCredit*f.W*f.H)
	r.climbOn(f)
	return l.texts
}

// climbOn goes on with the dear rungs where the last frame stopped.
func (r *Reader) climbOn(f Frame) {
	for range dear {
		g := dear[r.next%len(dear)]
		area := g.area(f.W, f.H)
		cost := g.cost(area)
		if cost > r.credit || r.look.work+cost > r.look.most {
			return
		}
		r.next++
		before := r.look.work
		found := r.attempt(g, area)
		r.credit = max(r.credit-(r.look.work-before), -mostDebt*f.W*f.H)
		if found {
			return
		}
	}
}

// attempt looks at a part of the frame in one way. It returns whether the frame
// has shown anything by now; what was found, if not in the first way, is remembered.
func (r *Reader) attempt(g rung, area rect) bool {
	l := r.look
	found := len(l.texts)
	l.read(g, area)
	if len(l.texts) > found && g != first {
		r.held = held{rung: g, place: l.last, left: memory}
	}
	return len(l.texts) > 0
}

package scan

import "math"

// contrast sets how many grey levels off the threshold a module counts as all dark
// or all light, by the middles of the finders: half of theirs, and no more than
// that where much is plain.
func (l *look) contrast(t triple) {
	const least, most = 2, 24
	sum := 0.0
	for _, f := range [3]*finder{t.a, t.b, t.c} {
		sum += math.Abs(l.tone(f.middle()))
	}
	l.clip = min(max(sum/6, least), most)
}

// tone is how dark a place is: grey levels below the threshold there, turned round
// for light codes on dark. Outside the picture,
// and where nothing can be told apart, it is 0.
func (l *look) tone(p vec) float64 {
	x, y := int(p.x), int(p.y)
	if p.x < 0 || p.y < 0 || !l.bits.within(x, y) {
		return 0
	}
	level := l.limits.near(x, y)
	if level == quiet {
		return 0
	}
	return l.sign * (float64(level) - l.pic.at(p.x, p.y))
}

// beat tells how well a warp fits the timing patterns, by the binarised picture:
// 1 is all, 0 is chance. It is quick, and most wrong triples end here.
func (l *look) beat(w *warp, p *pattern) float64 {
	sum, seen := 0, 0
	for _, m := range p.marks[p.timing:] {
		at := w.plane(float64(m.x)+0.5, float64(m.y)+0.5)
		x, y := int(at.x), int(at.y)
		if !l.bits.within(x, y) {
			continue
		}
		if seen++; l.bits.dark(x, y) == (m.dark == (l.sign > 0)) {
			sum++
		} else {
			sum--
		}
	}
	l.spend(8 * len(p.marks[p.timing:]))
	if 2*seen < len(p.marks[p.timing:]) {
		return 0
	}
	return float64(sum) / float64(seen)
}

// match tells how well a warp fits the marks: 1 is all, 0 is chance. Each module is
// looked at in two places beside its middle, across one or the other diagonal.
func (l *look) match(w *warp, marks []mark) float64 {
	sum := 0.0
	for _, m := range marks {
		p, right, down := w.view(float64(m.x)+0.5, float64(m.y)+0.5)
		if (m.x^m.y)&1 != 0 {
			right = right.times(-1)
		}
		d := right.add(down).times(0.25)
		module := min(max(l.tone(p.add(d)), -l.clip), l.clip) + min(max(l.tone(p.sub(d)), -l.clip), l.clip)
		if m.dark {
			sum += module
		} else {
			sum -= module
		}
	}
	l.spend(40 * len(marks))
	return sum / (2 * l.clip * float64(len(marks)))
}

// refine moves the four corners of a flat warp as long as that fits the marks
// better, in steps that become smaller.
func (l *look) refine(w warp, marks []mark) (warp, float64) {
	best := l.match(&w, marks)
	at := w.control()
	size := math.Sqrt(at[1].sub(at[0]).dot(at[1].sub(at[0]))) / float64(w.modules-7)
	for step := size * 0.6; step > size/12; step /= 2 {
		for range 2 {
			better := false
			for i := range at {
				for _, d := range [4]vec{{step, 0}, {-step, 0}, {0, step}, {0, -step}} {
					if i == 2 { // the corner without a finder may be further off
						d = d.times(2)
					}
					try := at
					try[i] = try[i].add(d)
					v := flat(w.modules, try[0], try[1], try[2], try[3])
					if fit := l.match(&v, marks); fit > best {
						best, at, w, better = fit, try, v, true
					}
				}
			}
			if !better {
				break
			}
		}
	}
	return w, best
}

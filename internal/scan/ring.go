package scan

import "math"

const rays = 32

// compass is the directions of the rays.
type compass [rays]vec

func newCompass() (c compass) {
	for i := range c {
		sin, cos := math.Sincos((float64(i) + 0.25) * 2 * math.Pi / rays)
		c[i] = vec{cos, sin}
	}
	return c
}

// shape sends rays from the middle of a finder over its rings. Along each the
// three edges are as 3 to 5 to 7, however the square lies: so the rays tell a
// finder from other things, and its outline gives corners and sides.
func (l *look) shape(f *finder) bool {
	var radius [rays]float64
	good := 0
	sum := 0.0
	for i, d := range l.compass {
		r, ok := l.ray(f, d)
		if ok {
			good++
			sum += r
		}
		radius[i] = r
	}
	f.fit = float64(good) / rays
	if good < rays*6/10 {
		return false
	}
	return l.outline(f, &radius)
}

// ray follows one direction. It gives the way to the outer edge, or 0.
func (l *look) ray(f *finder, d vec) (float64, bool) {
	b := &l.bits
	step := max(0.5, f.module/8)
	most := int(9 * f.module / step)
	var edge [3]float64
	at := 0
	colour := !f.inverse
	x, y := f.x, f.y
	dx, dy := d.x*step, d.y*step
	i := 0
	for ; i < most && at < 3; i++ {
		x, y = x+dx, y+dy
		ix, iy := int(x), int(y)
		if x < 0 || y < 0 || !b.within(ix, iy) {
			if at == 2 { // a symbol without a margin fills the picture
				edge[at] = (float64(i) + 0.5) * step
				at++
			}
			break
		}
		if b.dark(ix, iy) != colour {
			edge[at] = (float64(i) + 0.5) * step
			at, colour = at+1, !colour
		}
	}
	l.spend(2 * i)
	if at < 3 {
		return 0, false
	}
	// Edge to edge of the same kind first: that feels no wrong threshold.
	dark, light, all := edge[2]-edge[0], edge[1], edge[2]
	ok := math.Abs(dark/all-4.0/7) < 0.2 && math.Abs(light/all-5.0/7) < 0.17 && edge[0]/all > 0.22 && edge[0]/all < 0.66
	if !ok {
		return 0, false
	}
	return (edge[2] + edge[0]) / 10 * 7, true
}

// outline finds the corners from the ends of the rays: the point that is furthest
// off and its opposite, and the two furthest from the line between them; then the
// sides as straight lines through the points between corners.
func (l *look) outline(f *finder, radius *[rays]float64) bool {
	var p [rays]vec
	n := 0
	for i, d := range l.compass {
		if radius[i] > 0 {
			p[n] = d.times(radius[i])
			n++
		}
	}
	pts := p[:n]
	var at [4]int
	if !corners(pts, &at) {
		return false
	}
	for i := range 4 {
		f.corner[i] = f.middle().add(pts[at[i]])
	}
	straighten(f, pts, at)
	// The middle of a square in perspective is where its diagonals cross.
	if m, ok := meet(f.corner[0], f.corner[2].sub(f.corner[0]), f.corner[1], f.corner[3].sub(f.corner[1])); ok {
		if d := m.sub(f.middle()); d.dot(d) < f.module*f.module {
			f.x, f.y = m.x, m.y
		}
	}
	c := &f.corner
	f.u = c[1].sub(c[0]).add(c[2].sub(c[3])).times(1.0 / 14)
	f.v = c[3].sub(c[0]).add(c[2].sub(c[1])).times(1.0 / 14)
	area := f.u.cross(f.v)
	if area < 0.25 {
		return false
	}
	f.module = math.Sqrt(area)
	longer, shorter := max(f.u.dot(f.u), f.v.dot(f.v)), min(f.u.dot(f.u), f.v.dot(f.v))
	return longer < 16*shorter
}

// corners picks four of the points, in their order.
func corners(p []vec, at *[4]int) bool {
	// The direction that the points are furthest in is that of a corner.
	best := -1.0
	for i, a := range p {
		if d := a.dot(a); d > best {
			best, at[0] = d, i
		}
	}
	a := p[at[0]]
	best = -1
	for i, b := range p {
		if d := b.sub(a); d.dot(d) > best {
			best, at[2] = d.dot(d), i
		}
	}
	along := p[at[2]].sub(a)
	least, most := 0.0, 0.0
	at[1], at[3] = -1, -1
	for i, b := range p {
		switch d := along.cross(b.sub(a)); {
		case d < least:
			least, at[1] = d, i
		case d > most:
			most, at[3] = d, i
		}
	}
	return at[1] >= 0 && at[3] >= 0 && turned(at, len(p))
}

// turned puts the corners in the order of the rays, which is clockwise, and tells
// whether they are four.
func turned(at *[4]int, n int) bool {
	if (at[1]-at[0]+n)%n > (at[2]-at[0]+n)%n {
		at[1], at[3] = at[3], at[1]
	}
	a, b, c := (at[1]-at[0]+n)%n, (at[2]-at[0]+n)%n, (at[3]-at[0]+n)%n
	return 0 < a && a < b && b < c
}

// straighten moves the corners to where straight lines through the points between
// them meet.
func straighten(f *finder, p []vec, at [4]int) {
	var from, along [4]vec
	for i := range 4 {
		n := (at[(i+1)%4] - at[i] + len(p)) % len(p)
		if n < 3 {
			from[i], along[i] = p[at[i]], p[at[(i+1)%4]].sub(p[at[i]])
			continue
		}
		side := make([]vec, 0, rays)
		for k := 1; k < n; k++ {
			side = append(side, p[(at[i]+k)%len(p)])
		}
		from[i], along[i] = straight(side)
	}
	for i := range 4 {
		before := (i + 3) % 4
		m, ok := meet(from[before], along[before], from[i], along[i])
		if !ok {
			continue
		}
		if d := m.sub(p[at[i]]); d.dot(d) < 6*f.module*f.module {
			f.corner[i] = f.middle().add(m)
		}
	}
}

// straight is the line of the least squares through points: the mean, and the
// direction of the largest spread. Points far off are left out in a second round.
func straight(p []vec) (from, along vec) {
	from, along = regress(p)
	norm := along.dot(along)
	if len(p) < 5 || norm == 0 {
		return from, along
	}
	var sum float64
	for _, a := range p {
		d := along.cross(a.sub(from))
		sum += d * d
	}
	limit := 2 * sum / float64(len(p))
	kept := p[:0]
	for _, a := range p {
		if d := along.cross(a.sub(from)); d*d <= limit {
			kept = append(kept, a)
		}
	}
	if len(kept) < 3 {
		return from, along
	}
	return regress(kept)
}

func regress(p []vec) (from, along vec) {
	for _, a := range p {
		from = from.add(a)
	}
	from = from.times(1 / float64(len(p)))
	var xx, xy, yy float64
	for _, a := range p {
		d := a.sub(from)
		xx, xy, yy = xx+d.x*d.x, xy+d.x*d.y, yy+d.y*d.y
	}
	sin, cos := math.Sincos(math.Atan2(2*xy, xx-yy) / 2)
	return from, vec{cos, sin}
}

// meet is where two lines cross, each a point and a direction.
func meet(a, da, b, db vec) (vec, bool) {
	det := da.cross(db)
	if math.Abs(det) < 1e-9 {
		return vec{}, false
	}
	return a.add(da.times(b.sub(a).cross(db) / det)), true
}

package scan

// warp maps places in a symbol, in modules from its top left corner, to the
// picture: a perspective and, for paper that is not flat, what each alignment
// pattern was found beside it.
type warp struct {
	modules int
	m       [9]float64 // the perspective, of the square between the middles of finders
	off     []vec      // nodes x nodes, row by row; nil: none
	nodes   []int      // module of each node's middle, the same in both directions
}

// flat is the warp that takes the middles of three finders and that of the square
// module opposite to the given places.
func flat(modules int, a, b, d, c vec) warp {
	w := warp{modules: modules}
	dx1, dx2, dx3 := b.x-d.x, c.x-d.x, a.x-b.x+d.x-c.x
	dy1, dy2, dy3 := b.y-d.y, c.y-d.y, a.y-b.y+d.y-c.y
	det := dx1*dy2 - dx2*dy1
	g, h := 0.0, 0.0
	if det != 0 {
		g, h = (dx3*dy2-dx2*dy3)/det, (dx1*dy3-dx3*dy1)/det
	}
	w.m = [9]float64{
		b.x - a.x + g*b.x, c.x - a.x + h*c.x, a.x,
		b.y - a.y + g*b.y, c.y - a.y + h*c.y, a.y,
		g, h, 1,
	}
	return w
}

// unit is the square's coordinate of a place in modules.
func (w *warp) unit(m float64) float64 { return (m - 3.5) / float64(w.modules-7) }

// plane maps by the perspective alone. A place behind the viewer is far away.
func (w *warp) plane(x, y float64) vec {
	u, v := w.unit(x), w.unit(y)
	z := w.m[6]*u + w.m[7]*v + 1
	if z < 0.05 {
		return vec{-1e6, -1e6}
	}
	return vec{(w.m[0]*u + w.m[1]*v + w.m[2]) / z, (w.m[3]*u + w.m[4]*v + w.m[5]) / z}
}

// bend interpolates between the four nodes about a place; beyond the outermost it
// goes on as between the last two.
func (w *warp) bend(x, y float64) vec {
	i, s := w.cell(x)
	j, t := w.cell(y)
	n := len(w.nodes)
	top := mix(w.off[j*n+i], w.off[j*n+i+1], s)
	bottom := mix(w.off[(j+1)*n+i], w.off[(j+1)*n+i+1], s)
	return mix(top, bottom, t)
}

func (w *warp) cell(x float64) (int, float64) {
	i := 0
	for i < len(w.nodes)-2 && x > float64(w.nodes[i+1])+0.5 {
		i++
	}
	from, to := float64(w.nodes[i])+0.5, float64(w.nodes[i+1])+0.5
	return i, (x - from) / (to - from)
}

// view maps a place, and tells how it moves in the picture for one module right and
// one down.
func (w *warp) view(x, y float64) (p, right, down vec) {
	u, v := w.unit(x), w.unit(y)
	z := w.m[6]*u + w.m[7]*v + 1
	if z < 0.05 {
		return vec{-1e6, -1e6}, vec{1, 0}, vec{0, 1}
	}
	z = 1 / z
	p = vec{(w.m[0]*u + w.m[1]*v + w.m[2]) * z, (w.m[3]*u + w.m[4]*v + w.m[5]) * z}
	z /= float64(w.modules - 7)
	right = vec{(w.m[0] - p.x*w.m[6]) * z, (w.m[3] - p.y*w.m[6]) * z}
	down = vec{(w.m[1] - p.x*w.m[7]) * z, (w.m[4] - p.y*w.m[7]) * z}
	if w.off != nil {
		p = p.add(w.bend(x, y))
	}
	return p, right, down
}

// control gives the four places that flat takes.
func (w *warp) control() [4]vec {
	a, b := 3.5, float64(w.modules)-3.5
	return [4]vec{w.plane(a, a), w.plane(b, a), w.plane(b, b), w.plane(a, b)}
}

// through is the warp that takes three middles and another place of the symbol,
// (x, y) in modules, to places in the picture.
func through(modules int, a, b, c, p vec, x, y float64) (warp, bool) {
	n := float64(modules) - 7
	u, v := (x-3.5)/n, (y-3.5)/n
	// The opposite corner d = a + (b-a) + (c-a) in the frame in which p is given:
	// solve for the perspective that has p at (u, v).
	ab, ac, ap := b.sub(a), c.sub(a), p.sub(a)
	area := ab.cross(ac)
	if area == 0 {
		return warp{}, false
	}
	s, t := ap.cross(ac)/area, ab.cross(ap)/area
	// s = (1+g)u/(1+gu+hv), t = (1+h)v/(1+gu+hv)
	// => s + g(su - u) + h(sv) = u ; t + g(tu) + h(tv - v) = v
	m00, m01, r0 := s*u-u, s*v, u-s
	m10, m11, r1 := t*u, t*v-v, v-t
	det := m00*m11 - m01*m10
	if det > -1e-12 && det < 1e-12 {
		return warp{}, false
	}
	g, h := (r0*m11-r1*m01)/det, (m00*r1-m10*r0)/det
	if g < -0.75 || h < -0.75 || g > 3 || h > 3 || 1+g+h < 0.2 {
		return warp{}, false
	}
	w := warp{modules: modules}
	w.m = [9]float64{
		b.x - a.x + g*b.x, c.x - a.x + h*c.x, a.x,
		b.y - a.y + g*b.y, c.y - a.y + h*c.y, a.y,
		g, h, 1,
	}
	return w, true
}

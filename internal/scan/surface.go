package scan

// terms are the coefficients of a surface of the second degree.
const terms = 6

// surface is how far a symbol lies beside its flat warp, as two polynomials in the
// place: creased or curved paper is that smooth between its alignment patterns.
type surface struct {
	x, y  [terms]float64
	scale float64
}

func (s *surface) powers(x, y float64) [terms]float64 {
	x, y = x/s.scale-0.5, y/s.scale-0.5
	return [terms]float64{1, x, y, x * y, x * x, y * y}
}

func (s *surface) at(x, y float64) (v vec) {
	for i, p := range s.powers(x, y) {
		v.x += s.x[i] * p
		v.y += s.y[i] * p
	}
	return v
}

// smoothSurface fits a surface to the nodes that were found and to the finders.
// Those far off it, which were found in the wrong place, lose their weight in
// further rounds.
func smoothSurface(at []node, modules float64) surface {
	s := surface{scale: modules}
	for range 5 {
		var sums [terms][terms + 2]float64
		first := s.x == [terms]float64{} && s.y == [terms]float64{}
		for i := range at {
			k := &at[i]
			weight := 1.0
			switch {
			case k.fixed:
				weight = 4
			case !k.found:
				continue
			case !first:
				d := s.at(k.x, k.y).sub(k.off)
				weight = 1 / (1 + d.dot(d)*d.dot(d))
			}
			p := s.powers(k.x, k.y)
			for r := range terms {
				for c := range terms {
					sums[r][c] += weight * p[r] * p[c]
				}
				sums[r][terms] += weight * p[r] * k.off.x
				sums[r][terms+1] += weight * p[r] * k.off.y
			}
		}
		for r := range terms {
			// Where too few are known the curve stays flat.
			sums[r][r] += [terms]float64{1e-6, 1e-3, 1e-3, 1e-2, 1e-2, 1e-2}[r]
		}
		solve(&sums)
		for r := range terms {
			s.x[r], s.y[r] = sums[r][terms], sums[r][terms+1]
		}
	}
	return s
}

// solve turns the left square of the rows into a diagonal of ones; the matrix is
// symmetric and positive.
func solve(m *[terms][terms + 2]float64) {
	for i := range terms {
		for c := terms + 1; c >= i; c-- {
			m[i][c] /= m[i][i]
		}
		for r := range terms {
			if r == i {
				continue
			}
			f := m[r][i]
			for c := i; c < terms+2; c++ {
				m[r][c] -= f * m[i][c]
			}
		}
	}
}

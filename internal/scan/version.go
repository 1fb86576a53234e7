package scan

import "math/bits"

// versions are the 18 bits beside two finders of versions 7 to 40 (ISO/IEC 18004,
// annex D).
var versions = [...]uint32{
	0x07C94, 0x085BC, 0x09A99, 0x0A4D3, 0x0BBF6, 0x0C762, 0x0D847, 0x0E60D, 0x0F928,
	0x10B78, 0x1145D, 0x12A17, 0x13532, 0x149A6, 0x15683, 0x168C9, 0x177EC, 0x18EC4,
	0x191E1, 0x1AFAB, 0x1B08E, 0x1CC1A, 0x1D33F, 0x1ED75, 0x1F250, 0x209D5, 0x216F0,
	0x228BA, 0x2379F, 0x24B0B, 0x2542E, 0x26A64, 0x27541, 0x28C69,
}

// version reads the version beside the top right or the bottom left finder, with
// the finder's own sides as the measure. It gives 0 where neither says it.
func (l *look) version(t triple) int {
	right, down := t.b.middle().sub(t.a.middle()), t.c.middle().sub(t.a.middle())
	best, least := 0, 4
	for i, f := range [2]*finder{t.b, t.c} {
		u, v := towards(f, right), towards(f, down)
		if i == 1 { // the bottom left one is the other's mirror image
			u, v = v, u
		}
		var word uint32
		for y := 5; y >= 0; y-- {
			for x := -5; x >= -7; x-- {
				p := f.middle().add(u.times(float64(x))).add(v.times(float64(y - 3)))
				word <<= 1
				if l.tone(p) > 0 {
					word |= 1
				}
			}
		}
		for k, w := range versions {
			if d := bits.OnesCount32(w ^ word); d < least {
				best, least = k+7, d
			}
		}
	}
	l.spend(400)
	return best
}

// towards is the side of a finder that leads the most in a direction, that way.
func towards(f *finder, d vec) vec {
	s := along(f, d)
	if s.dot(d) < 0 {
		return s.times(-1)
	}
	return s
}

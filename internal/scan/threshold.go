package scan

const (
	block = 8 // pixels: side of the blocks whose contrast is measured

	tops  = 0x8080808080808080 // the highest bit of each byte
	lows  = 0x0101010101010101 // the lowest
	quiet = 0                  // the threshold where there is nothing to tell apart: all is light
)

// thresholds are the grey levels that part dark from light, one for each block of
// 8 x 8 pixels.
//
// A block's threshold is the mean of the middles between darkest and lightest
// pixel of the blocks around, weighted by the squares of their contrasts: it is
// where the edges nearby have their middle, whether there is more paper or more
// ink, and it is the same for light codes on dark.
type thresholds struct {
	w, h    int // blocks
	lo, hi  []uint64
	weights []uint32 // integral over the blocks, modulo 2^32
	levels  []uint32 // likewise, of weight times middle
	at      []byte
}

// most returns, in the highest bit of each byte, whether a's byte is not below
// b's.
func notBelow(a, b uint64) uint64 {
	return (a&^b | ^(a^b)&((a|tops)-(b&^tops))) & tops
}

// choose takes a's bytes where mask's highest bit is set, else b's.
func choose(mask, a, b uint64) uint64 {
	mask = mask - mask>>7 | mask
	return b ^ (a^b)&mask
}

// measure finds the contrast of all blocks.
func (t *thresholds) measure(p *picture) {
	t.w, t.h = (p.w+block-1)/block, (p.h+block-1)/block
	if n := (t.w + 1) * (t.h + 1); cap(t.weights) < n {
		t.weights, t.levels, t.at = make([]uint32, n), make([]uint32, n), make([]byte, n)
	} else {
		t.weights, t.levels, t.at = t.weights[:n], t.levels[:n], t.at[:n]
	}
	if cap(t.lo) < t.w {
		t.lo, t.hi = make([]uint64, t.w), make([]uint64, t.w)
	}
	clear(t.weights[:t.w+1])
	clear(t.levels[:t.w+1])
	for by := range t.h {
		t.extremes(p, min(by*block, p.h-block))
		t.add(by)
	}
}

// extremes finds the lowest and highest of each block's eight columns, in every
// second of its rows.
func (t *thresholds) extremes(p *picture, y int) {
	lo, hi := t.lo[:t.w], t.hi[:t.w]
	for i := range lo {
		lo[i], hi[i] = ^uint64(0), 0
	}
	for dy := 0; dy < block; dy += 2 {
		row := p.row(y + dy + y>>3&1)
		for i := range lo {
			v := eight(row, min(i*block, p.w-block), p.step)
			l, h := lo[i], hi[i]
			lo[i] = choose(notBelow(l, v), v, l)
			hi[i] = choose(notBelow(v, h), v, h)
		}
	}
}

// add puts one row of blocks into the integrals.
func (t *thresholds) add(by int) {
	above, here := by*(t.w+1), (by+1)*(t.w+1)
	var weights, levels uint32
	t.weights[here], t.levels[here] = 0, 0
	for i := range t.w {
		lo, hi := t.lo[i], t.hi[i]
		for shift := 32; shift >= 8; shift /= 2 {
			l, h := lo>>shift, hi>>shift
			lo = choose(notBelow(lo, l), l, lo)
			hi = choose(notBelow(h, hi), h, hi)
		}
		l, h := uint32(lo&0xff), uint32(hi&0xff)
		weight := (h - l) * (h - l)
		weights += weight / 16
		levels += weight / 16 * (l + h) / 2
		t.weights[here+i+1] = t.weights[above+i+1] + weights
		t.levels[here+i+1] = t.levels[above+i+1] + levels
	}
}

// set works out the thresholds with windows of 2*radius+1 blocks, radius at most
// 15. Where a window's contrast is below least grey levels, nothing is told apart.
// It returns how many blocks are not quiet.
func (t *thresholds) set(radius int, least uint32) (busy int) {
	stride := t.w + 1
	for by := range t.h {
		top, bottom := max(by-radius, 0)*stride, min(by+radius+1, t.h)*stride
		rows := uint32(min(by+radius+1, t.h) - max(by-radius, 0))
		for bx := range t.w {
			l, r := max(bx-radius, 0), min(bx+radius+1, t.w)
			weights := t.weights[bottom+r] - t.weights[bottom+l] - t.weights[top+r] + t.weights[top+l]
			at := uint32(quiet)
			if 4*weights > least*least/16*rows*uint32(r-l) {
				levels := t.levels[bottom+r] - t.levels[bottom+l] - t.levels[top+r] + t.levels[top+l]
				at = levels / weights
				busy++
			}
			t.at[by*t.w+bx] = byte(at)
		}
	}
	return busy
}

// near is the threshold at a pixel.
func (t *thresholds) near(x, y int) byte { return t.at[y/block*t.w+x/block] }

// binarise parts a picture into dark and light, eight pixels at a time. A pixel is
// dark when it is below its block's threshold.
func (t *thresholds) binarise(p *picture, b *bitmap) {
	b.size(p.w, p.h)
	for y := range p.h {
		row, at, out := p.row(y), t.at[y/block*t.w:][:t.w], b.row(y)
		for i := range out {
			out[i] = word(row, at, i*64, p)
		}
	}
}

// word is the 64 pixels of a row from x on.
func word(row, at []byte, x int, p *picture) (out uint64) {
	for i := uint(0); i < 64 && x < p.w; i, x = i+8, x+8 {
		level := at[x/block]
		if level == quiet {
			continue
		}
		if x+8 > p.w {
			for ; x < p.w; i, x = i+1, x+1 {
				if row[x*p.step] < level {
					out |= 1 << i
				}
			}
			return out
		}
		dark := ^notBelow(eight(row, x, p.step), uint64(level)*lows) & tops
		out |= dark >> 7 * 0x0102040810204080 >> 56 << i
	}
	return out
}

package scan

import "encoding/binary"

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
	most    uint32 // weight of a block
}

// above returns all seven bits of each byte in which a's byte is not below b's. The
// bytes have seven bits.
func above(a, b uint64) uint64 {
	m := ((a | tops) - b) & tops
	return m - m>>7
}

// choose takes a's bits where mask has ones, else b's.
func choose(mask, a, b uint64) uint64 { return b ^ (a^b)&mask }

// seven leaves the upper seven bits of each byte: what is compared then fits below
// the bit that is borrowed from.
func seven(v uint64) uint64 { return v >> 1 &^ tops }

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
	t.most = 0
	clear(t.weights[:t.w+1])
	clear(t.levels[:t.w+1])
	for by := range t.h {
		t.extremes(p, min(by*block, p.h-block))
		t.add(by)
	}
}

// extremes finds the lowest and highest of each block's eight columns, in every
// second of its rows, as seven bits.
func (t *thresholds) extremes(p *picture, y int) {
	lo, hi := t.lo[:t.w], t.hi[:t.w]
	for i := range lo {
		lo[i], hi[i] = ^uint64(tops), 0
	}
	whole := p.w / block
	for dy := y >> 3 & 1; dy < block; dy += 2 {
		row := p.row(y + dy)
		if p.step == 1 {
			for i := range whole {
				v := seven(binary.LittleEndian.Uint64(row[i*block:]))
				lo[i] = choose(above(lo[i], v), v, lo[i])
				hi[i] = choose(above(v, hi[i]), v, hi[i])
			}
		} else {
			for i := range whole {
				v := seven(eight(row, i*block, p.step))
				lo[i] = choose(above(lo[i], v), v, lo[i])
				hi[i] = choose(above(v, hi[i]), v, hi[i])
			}
		}
		if whole < t.w { // the last block overlaps the one before
			v := seven(eight(row, p.w-block, p.step))
			lo[whole] = choose(above(lo[whole], v), v, lo[whole])
			hi[whole] = choose(above(v, hi[whole]), v, hi[whole])
		}
	}
}

// add puts one row of blocks into the integrals.
func (t *thresholds) add(by int) {
	before, here := t.weights[by*(t.w+1):][:t.w+1], t.weights[(by+1)*(t.w+1):][:t.w+1]
	levelsBefore, levelsHere := t.levels[by*(t.w+1):][:t.w+1], t.levels[(by+1)*(t.w+1):][:t.w+1]
	var weights, levels uint32
	here[0], levelsHere[0] = 0, 0
	for i := range t.w {
		lo, hi := t.lo[i], t.hi[i]
		// The extremes of the eight columns: four of each, then both in one word.
		lo = choose(above(lo, lo>>32), lo>>32, lo) & 0xffffffff
		hi = choose(above(hi>>32, hi), hi>>32, hi) & 0xffffffff
		both := (^lo&0x7f7f7f7f)<<32 | hi
		both = choose(above(both>>16, both), both>>16, both)
		both = choose(above(both>>8, both), both>>8, both)
		h, l := uint32(both&0x7f), 0x7f-uint32(both>>32&0x7f)
		weight := (h - l) * (h - l) / 4
		t.most = max(t.most, weight)
		weights += weight
		levels += weight * (l + h)
		here[i+1] = before[i+1] + weights
		levelsHere[i+1] = levelsBefore[i+1] + levels
	}
}

// set works out the thresholds with windows of 2*radius+1 blocks, radius at most
// 15. Where less than a quarter of a window has a contrast of least grey levels,
// nothing is told apart; it returns false where that is so everywhere.
func (t *thresholds) set(radius int, least uint32) bool {
	least *= least
	if 4*16*t.most <= least {
		return false
	}
	busy := false
	stride := t.w + 1
	for by := range t.h {
		top, bottom := max(by-radius, 0)*stride, min(by+radius+1, t.h)*stride
		rows := uint32(min(by+radius+1, t.h) - max(by-radius, 0))
		for bx := range t.w {
			l, r := max(bx-radius, 0), min(bx+radius+1, t.w)
			weights := t.weights[bottom+r] - t.weights[bottom+l] - t.weights[top+r] + t.weights[top+l]
			at := uint32(quiet)
			if 4*16*uint64(weights) > uint64(least*rows*uint32(r-l)) {
				levels := t.levels[bottom+r] - t.levels[bottom+l] - t.levels[top+r] + t.levels[top+l]
				at = levels / weights
				busy = true
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
		whole := p.w / 64
		for i := range whole {
			out[i] = word(row[i*64*p.step:][:64*p.step], at[i*8:][:8], p.step)
		}
		if whole < len(out) {
			out[whole] = rest(row[whole*64*p.step:], at[whole*8:], p.step)
		}
	}
}

// word is 64 pixels of a row.
func word(row, at []byte, step int) (out uint64) {
	for i, level := range at {
		if level == quiet {
			continue
		}
		var v uint64
		if step == 1 {
			v = binary.LittleEndian.Uint64(row[i*8:])
		} else {
			v = eight(row, i*8, step)
		}
		// The highest bit of each byte of light is set where the pixel is not below.
		light := (v | tops) - uint64(level&0x7f)*lows
		if level < 0x80 {
			light |= v
		} else {
			light &= v
		}
		out |= ^light & tops >> 7 * 0x0102040810204080 >> 56 << (i * 8)
	}
	return out
}

// rest is the fewer than 64 pixels at the end of a row.
func rest(row, at []byte, step int) (out uint64) {
	for x := 0; x*step < len(row); x++ {
		if row[x*step] < at[x/block] {
			out |= 1 << x
		}
	}
	return out
}

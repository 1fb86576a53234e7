package scan

// bitmap is a binary picture: bit x%64 of word x/64 of a row is pixel x, 1 is
// dark. Bits past the width are 0.
type bitmap struct {
	w, h, words int
	bits        []uint64
}

// size gives the bitmap w x h pixels; what they are is left open.
func (b *bitmap) size(w, h int) {
	b.w, b.h, b.words = w, h, (w+63)/64
	if n := b.words * h; cap(b.bits) < n {
		b.bits = make([]uint64, n)
	} else {
		b.bits = b.bits[:n]
	}
}

func (b *bitmap) row(y int) []uint64 { return b.bits[y*b.words : (y+1)*b.words] }

// dark tells whether pixel (x, y), which lies within, is dark.
func (b *bitmap) dark(x, y int) bool {
	return b.bits[y*b.words+x>>6]>>(x&63)&1 != 0
}

// within tells whether (x, y) is a pixel.
func (b *bitmap) within(x, y int) bool { return uint(x) < uint(b.w) && uint(y) < uint(b.h) }

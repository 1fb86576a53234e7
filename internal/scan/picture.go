package scan

import "encoding/binary"

// picture is grey pixels where they lie: in the frame itself or in a level that
// was made of it. Pixel (x, y) is pix[y*stride+x*step].
type picture struct {
	pix                []byte
	stride, step, w, h int
}

// row is row y, one byte for each step of its pixels.
func (p *picture) row(y int) []byte {
	from := y * p.stride
	return p.pix[from : from+p.w*p.step : from+p.w*p.step]
}

// eight gives the pixels x to x+7 of a row, the first in the lowest byte.
func eight(row []byte, x, step int) uint64 {
	if step == 1 {
		return binary.LittleEndian.Uint64(row[x:])
	}
	b := row[2*x : 2*x+16]
	return even(binary.LittleEndian.Uint64(b)) | even(binary.LittleEndian.Uint64(b[8:]))<<32
}

// even packs the bytes 0, 2, 4 and 6 of a word.
func even(v uint64) uint64 {
	v &= 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return (v | v>>16) & 0xffffffff
}

// at interpolates between the four pixels about a place within the picture, where
// pixel (0, 0) covers 0 to 1.
func (p *picture) at(x, y float64) float64 {
	fx, fy := int(x*256)-128, int(y*256)-128
	ix, iy := fx>>8, fy>>8
	if uint(ix) >= uint(p.w-1) || uint(iy) >= uint(p.h-1) {
		return float64(p.pix[min(max(iy, 0), p.h-1)*p.stride+min(max(ix, 0), p.w-1)*p.step])
	}
	fx, fy = fx&255, fy&255
	i := iy*p.stride + ix*p.step
	top, bottom := p.pix[i:i+p.step+1], p.pix[i+p.stride:i+p.stride+p.step+1]
	a := int(top[0])*(256-fx) + int(top[p.step])*fx
	b := int(bottom[0])*(256-fx) + int(bottom[p.step])*fx
	return float64(a*(256-fy)+b*fy) * (1.0 / 65536)
}

// store is memory for one picture, kept between frames.
type store struct{ pix []byte }

// make gives a picture in the store; what was in it is lost.
func (s *store) make(w, h int) picture {
	if cap(s.pix) < w*h {
		s.pix = make([]byte, w*h)
	}
	return picture{pix: s.pix[:w*h], stride: w, step: 1, w: w, h: h}
}

// halve averages squares of two by two pixels.
func halve(p *picture, s *store) picture {
	out := s.make(p.w/2, p.h/2)
	for y := range out.h {
		a, b, o := p.row(2*y), p.row(2*y+1), out.row(y)
		x := 0
		for ; x+4 <= out.w; x += 4 {
			binary.LittleEndian.PutUint32(o[x:], pairs(eight(a, 2*x, p.step), eight(b, 2*x, p.step)))
		}
		for ; x < out.w; x++ {
			i, j := 2*x*p.step, (2*x+1)*p.step
			o[x] = byte((int(a[i]) + int(a[j]) + int(b[i]) + int(b[j]) + 2) / 4)
		}
	}
	return out
}

// pairs averages each two pixels of one row with the two of the other: four
// results of eight pixels in each row.
func pairs(a, b uint64) uint32 {
	const odd = 0x00ff00ff00ff00ff
	sum := a&odd + a>>8&odd + b&odd + b>>8&odd + 0x0002000200020002
	return uint32(even(sum >> 2))
}

// smooth is a light blur: the mean of three by three pixels, weighted 1 2 1 each
// way. It takes the grain off a noisy picture and the bars off a screen.
func smooth(p *picture, s *store, rows *[]uint16) picture {
	out := s.make(p.w, p.h)
	if cap(*rows) < 3*p.w {
		*rows = make([]uint16, 3*p.w)
	}
	line := func(y int) []uint16 { return (*rows)[(y+3)%3*p.w:][:p.w] }
	fill := func(y int) {
		in, to := p.row(min(max(y, 0), p.h-1)), line(y)
		last := p.w - 1
		at := func(x int) uint16 { return uint16(in[x*p.step]) }
		to[0], to[last] = 3*at(0)+at(1), 3*at(last)+at(last-1)
		for x := 1; x < last; x++ {
			to[x] = at(x-1) + 2*at(x) + at(x+1)
		}
	}
	fill(-1)
	fill(0)
	for y := range p.h {
		fill(y + 1)
		a, b, c, o := line(y-1), line(y), line(y+1), out.row(y)
		for x := range o {
			o[x] = byte((a[x] + 2*b[x] + c[x] + 8) / 16)
		}
	}
	return out
}

// double interpolates a part of a picture to twice its size.
func double(p *picture, s *store) picture {
	out := s.make(2*p.w, 2*p.h)
	for y := range out.h {
		near := y / 2
		far := min(max(near+2*(y%2)-1, 0), p.h-1)
		a, b, o := p.row(near), p.row(far), out.row(y)
		for x := range p.w {
			i := x * p.step
			l, r := max(x-1, 0)*p.step, min(x+1, p.w-1)*p.step
			mid, left, right := 3*int(a[i])+int(b[i]), 3*int(a[l])+int(b[l]), 3*int(a[r])+int(b[r])
			o[2*x] = byte((3*mid + left + 8) / 16)
			o[2*x+1] = byte((3*mid + right + 8) / 16)
		}
	}
	return out
}

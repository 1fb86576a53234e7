package camera

// Fit returns the frame scaled down to at most w x h pixels, keeping its shape;
// each pixel is the average of the area that it covers. A frame that fits already
// is returned as it is, with the same pixels. No side may be longer than MaxSide.
func (f Frame) Fit(w, h int) Frame { return new(fitter).fit(f, w, h) }

// fitter fits frames of one size after another in the same memory.
type fitter struct {
	w, h, outW, outH int // what the spans are for
	cols, rows       []span
	sums             []uint64 // one row of the result, in pixels times weights
	pix              []byte
}

// fit is Frame.Fit; the pixels of the result are the fitter's until the next call.
func (t *fitter) fit(f Frame, w, h int) Frame {
	if f.W <= w && f.H <= h || f.W < 1 || f.H < 1 || w < 1 || h < 1 {
		return f
	}
	out := Frame{W: w, H: h, Captured: f.Captured}
	if f.W*h > f.H*w { // wider than the box
		out.H = max(1, f.H*w/f.W)
	} else {
		out.W = max(1, f.W*h/f.H)
	}
	if t.w != f.W || t.h != f.H || t.outW != out.W || t.outH != out.H {
		*t = fitter{
			w: f.W, h: f.H, outW: out.W, outH: out.H, cols: spans(f.W, out.W), rows: spans(f.H, out.H),
			sums: make([]uint64, out.W), pix: make([]byte, out.W*out.H),
		}
	}
	out.Stride, out.Pix = out.W, t.pix

	area := uint64(f.W) * uint64(f.H)
	for y, r := range t.rows {
		clear(t.sums)
		for sy := r.from; sy < r.to; sy++ {
			addRow(t.sums, f.Pix[sy*f.Stride:][:f.W], t.cols, r.weight(sy, out.H))
		}
		for x, s := range t.sums {
			out.Pix[y*out.Stride+x] = byte((s + area/2) / area)
		}
	}
	return out
}

// span is the run of source pixels that one pixel of the result covers. Lengths
// are in units in which a pixel of the source is as long as the result has pixels,
// and one of the result as long as the source has: so all are whole numbers.
type span struct {
	from, to   int // source pixels, to is exclusive
	start, end int // in units
}

func spans(src, dst int) []span {
	out := make([]span, dst)
	for i := range out {
		start, end := i*src, (i+1)*src
		out[i] = span{from: start / dst, to: (end + dst - 1) / dst, start: start, end: end}
	}
	return out
}

// weight is how much of source pixel i lies in the span.
func (s span) weight(i, dst int) uint64 {
	return uint64(min(s.end, (i+1)*dst) - max(s.start, i*dst))
}

func addRow(sums []uint64, row []byte, cols []span, weight uint64) {
	dst := len(cols)
	for x, c := range cols {
		var s uint64
		for sx := c.from; sx < c.to; sx++ {
			s += uint64(row[sx]) * c.weight(sx, dst)
		}
		sums[x] += s * weight
	}
}

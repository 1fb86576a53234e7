package camera

import "time"

// Times of Dark.
const (
	// darkFor is how long frames must be dark: a hand before the camera, or the
	// moment in which a webcam finds its exposure, is no night.
	darkFor = time.Second
	// lightFor is how long a light stays on at least. It doubles, up to maxLightFor,
	// each time that it is dark again as soon as the light is off: then it was the
	// light itself that was seen.
	lightFor    = 10 * time.Second
	maxLightFor = 20 * time.Minute
)

// Dark tells when frames are too dark to read a printed ticket in, so that a light
// can be put on. Its methods are called from one goroutine.
type Dark struct {
	level  int
	light  func(on bool)
	on     bool
	since  time.Time     // the first of the frames in a row that ask for a change
	change time.Time     // when the light was last put on or off
	hold   time.Duration // how long it stays on at least
}

// NewDark returns a Dark that calls light with each change, at first when it is
// dark; light must not block. A frame is dark when its mean is below level, of
// 255; it is light again at twice the level, or half way from it to white where
// that is less, so that a light that is just enough does not put itself out.
func NewDark(level int, light func(on bool)) *Dark {
	return &Dark{level: level, light: light, hold: lightFor}
}

// See takes the next frame.
func (d *Dark) See(f Frame) {
	mean := brightness(f)
	want := mean < d.level
	if d.on {
		want = mean < min(2*d.level, (d.level+255)/2)
	}
	if want == d.on {
		d.since = time.Time{}
		return
	}
	if d.since.IsZero() {
		d.since = f.Captured
	}
	if f.Captured.Sub(d.since) < darkFor || d.on && f.Captured.Sub(d.change) < d.hold {
		return
	}
	if want {
		d.hold = d.next(f.Captured)
	}
	d.on, d.change, d.since = want, f.Captured, time.Time{}
	d.light(want)
}

// next gives how long the light that is put on now is to stay.
func (d *Dark) next(now time.Time) time.Duration {
	if d.change.IsZero() || now.Sub(d.change) > d.hold {
		return lightFor
	}
	return min(2*d.hold, maxLightFor)
}

// brightness gives the mean of a frame, 0 to 255, from one pixel in sixteen.
func brightness(f Frame) int {
	sum, n := 0, 0
	for y := 0; y < f.H; y += 4 {
		row := f.Pix[y*f.Stride:][:f.W]
		for x := 0; x < len(row); x += 4 {
			sum += int(row[x])
		}
		n += (f.W + 3) / 4
	}
	return sum / max(n, 1)
}

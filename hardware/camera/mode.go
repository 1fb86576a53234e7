package camera

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Format is a pixel format, as Linux names it: four characters, the first in the
// lowest byte (videodev2.h).
type Format uint32

// The formats that a camera may have here.
const (
	FormatGrey  Format = 'G' | 'R'<<8 | 'E'<<16 | 'Y'<<24 // a byte a pixel
	FormatYUYV  Format = 'Y' | 'U'<<8 | 'Y'<<16 | 'V'<<24 // two bytes a pixel, the first is its brightness
	FormatMJPEG Format = 'M' | 'J'<<8 | 'P'<<16 | 'G'<<24
	FormatJPEG  Format = 'J' | 'P'<<8 | 'E'<<16 | 'G'<<24 // what some drivers call the same
)

// Formats are the names that a configuration may use.
func Formats() []string { return []string{"GREY", "YUYV", "MJPG"} }

// ParseFormat reads a name of Formats. It returns an error for any other.
func ParseFormat(s string) (Format, error) {
	for _, f := range formats() {
		if f.String() == strings.ToUpper(s) {
			return f, nil
		}
	}
	return 0, fmt.Errorf("no format %q, there are %s", s, strings.Join(Formats(), ", "))
}

// formats are in the order of preference. Grey is what is read, with nothing
// wasted. YUYV is twice that on the bus, needs no decoding and has no artefacts
// where a module of a symbol ends; its length can be checked as that of grey can.
// A picture of motion JPEG costs more to decode than to read the code in it.
func formats() []Format { return []Format{FormatGrey, FormatYUYV, FormatMJPEG, FormatJPEG} }

// String gives the format's four characters.
func (f Format) String() string {
	b := []byte{byte(f), byte(f >> 8), byte(f >> 16), byte(f >> 24)}
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return strings.TrimRight(string(b), " ")
}

func (f Format) jpeg() bool { return f == FormatMJPEG || f == FormatJPEG }

// bytes are the bytes of a pixel; 0: no fixed number.
func (f Format) bytes() int {
	switch f {
	case FormatGrey:
		return 1
	case FormatYUYV:
		return 2
	}
	return 0
}

// Mode is one way to work that a device offers.
type Mode struct {
	Format        Format
	Width, Height int     // pixels
	Rate          float64 // frames a second at most; 0: the device does not say
}

// String gives the mode as in "YUYV 1280x720 at 30/s".
func (m Mode) String() string {
	if m.Rate == 0 {
		return fmt.Sprintf("%v %dx%d", m.Format, m.Width, m.Height)
	}
	return fmt.Sprintf("%v %dx%d at %.3g/s", m.Format, m.Width, m.Height, m.Rate)
}

// sizes is a range of frame sizes in pixels; a step of 0 is one size alone. All
// zero: the device does not say.
type sizes struct {
	minW, maxW, stepW int
	minH, maxH, stepH int
}

const (
	// plentyRate is the rate that is asked for: a code held up for a third of a
	// second is in five frames. Reading more would only cost power.
	plentyRate = 15.0 // frames a second
	// enoughRate is what a mode must have not to count as slow.
	enoughRate = 10.0
	// goodRate is where more frames a second are no reason to choose a mode.
	goodRate = 30.0
)

// wish is what the configuration says; zero: choose.
type wish struct {
	format        Format
	width, height int
	rate          float64
}

func (w wish) ask() float64 { return cmp.Or(w.rate, plentyRate) }

func (w wish) enough() float64 { return min(enoughRate, w.ask()) }

// targets are the sizes to ask for where a device would give any: that in which
// a ticket is read at arm's length, and that in which it is read close by.
func (w wish) targets() [][2]int {
	if w.width > 0 {
		return [][2]int{{w.width, w.height}}
	}
	return [][2]int{{MaxWidth, MaxHeight}, {640, 480}}
}

// offers lists what a device offers of what is wished for, the best first. It
// returns an error that says what there is when there is nothing of it.
func offers(d device, w wish) ([]Mode, error) {
	var all, fit []Mode
	there := d.Formats()
	for _, f := range formats() {
		if !slices.Contains(there, f) {
			continue
		}
		for _, size := range concrete(d.Sizes(f), w) {
			m := Mode{Format: f, Width: size[0], Height: size[1]}
			m.Rate = d.Rate(f, m.Width, m.Height)
			if slices.Contains(all, m) {
				continue // some devices list a size twice
			}
			all = append(all, m)
			if w.fits(m) {
				fit = append(fit, m)
			}
		}
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("it does not offer %v; it has %s", w, listed(all, there))
	}
	slices.SortStableFunc(fit, w.compare)
	return fit, nil
}

// String gives the wish as a person would say it.
func (w wish) String() string {
	var b strings.Builder
	b.WriteString("a picture")
	if w.width > 0 {
		fmt.Fprintf(&b, " of %dx%d", w.width, w.height)
	}
	if w.format != 0 {
		fmt.Fprintf(&b, " in %v", w.format)
	} else {
		b.WriteString(" in " + strings.Join(Formats(), ", "))
	}
	return b.String()
}

// listed names what a device offers, at most maxListed of it.
func listed(modes []Mode, there []Format) string {
	const maxListed = 8
	var names []string
	for _, m := range modes {
		names = append(names, m.String())
	}
	if len(names) == 0 {
		for _, f := range there {
			names = append(names, f.String())
		}
	}
	if len(names) == 0 {
		return "no format"
	}
	if n := len(names) - maxListed; n > 0 {
		names = append(names[:maxListed], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(names, ", ")
}

// concrete gives the sizes of ranges: each that stands alone, and of a real
// range the targets in it. Where the device does not say, the targets are tried:
// a driver takes the nearest that it has, and is asked what that is.
func concrete(ranges []sizes, w wish) (out [][2]int) {
	if len(ranges) == 0 {
		return w.targets()
	}
	for _, r := range ranges {
		switch {
		case r.maxW <= 0 || r.maxH <= 0:
			out = append(out, w.targets()...)
		case r.minW == r.maxW && r.minH == r.maxH:
			out = append(out, [2]int{r.maxW, r.maxH})
		default:
			out = append(out, r.within(w.targets())...)
		}
	}
	return out
}

// within gives the targets that lie in the range, or else its largest size that
// is no larger than the first target.
func (r sizes) within(targets [][2]int) (out [][2]int) {
	for _, t := range targets {
		if nearest(t[0], r.minW, r.maxW, r.stepW) == t[0] && nearest(t[1], r.minH, r.maxH, r.stepH) == t[1] {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		t := targets[0]
		out = append(out, [2]int{nearest(t[0], r.minW, r.maxW, r.stepW), nearest(t[1], r.minH, r.maxH, r.stepH)})
	}
	return out
}

// nearest gives the largest value of a range that is not above n, or its least.
func nearest(n, least, most, step int) int {
	step = max(step, 1)
	return least + max(0, min(n, most)-least)/step*step
}

func (w wish) fits(m Mode) bool {
	return (w.format == 0 || w.format == m.Format || w.format.jpeg() && m.Format.jpeg()) &&
		(w.width == 0 || w.width == m.Width && w.height == m.Height)
}

// compare puts the better mode first: one that is fast enough, then the size,
// then one whose rate is known, then the format, then the rate.
//
// A size comes before the format because what is too small to be resolved cannot
// be read in any; the rate comes last because the receiver takes the newest frame
// and drops the others.
func (w wish) compare(a, b Mode) int {
	slow := func(m Mode) bool { return m.Rate > 0 && m.Rate < w.enough() }
	unknown := func(m Mode) bool { return m.Rate == 0 }
	return cmp.Or(
		truth(slow(a), slow(b)),
		cmp.Compare(sizeRank(a), sizeRank(b)),
		truth(unknown(a), unknown(b)),
		cmp.Compare(slices.Index(formats(), a.Format), slices.Index(formats(), b.Format)),
		cmp.Compare(min(b.Rate, goodRate), min(a.Rate, goodRate)),
	)
}

// truth compares two properties; not to have it is better.
func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// sizeRank is lower for a better size: 1280x720, 640x480, then the others that
// need no averaging down, the largest first, then what is larger, the smallest
// first.
func sizeRank(m Mode) int {
	const area = MaxWidth * MaxHeight
	switch n := m.Width * m.Height; {
	case m.Width == MaxWidth && m.Height == MaxHeight:
		return 0
	case m.Width == 640 && m.Height == 480:
		return 1
	case m.Width <= MaxWidth && m.Height <= MaxHeight:
		return 2 + area - n
	default:
		return 2 + area + n
	}
}

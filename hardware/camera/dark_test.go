package camera

import (
	"slices"
	"testing"
	"time"
)

// night plays brightnesses to a Dark, ten frames a second; seen gives the
// brightness at a moment, the light being on or off. It returns the moments, in
// tenths of a second, at which the light changed.
func night(level, tenths int, seen func(tenth int, on bool) byte) (changes []int) {
	on, i := false, 0
	d := NewDark(level, func(now bool) {
		if now == on {
			changes = append(changes, -1)
		}
		on = now
		changes = append(changes, i)
	})
	begin := time.Unix(1_800_000_000, 0)
	f := Frame{Pix: make([]byte, 64), Stride: 8, W: 8, H: 8}
	for i = range tenths {
		v := seen(i, on)
		for j := range f.Pix {
			f.Pix[j] = v
		}
		f.Captured = begin.Add(time.Duration(i) * 100 * time.Millisecond)
		d.See(f)
	}
	return changes
}

func TestLightFollowsTheDark(t *testing.T) {
	for name, c := range map[string]struct {
		tenths int
		seen   func(i int, on bool) byte
		want   []int
	}{
		"day":                        {300, func(int, bool) byte { return 120 }, nil},
		"night, and the light helps": {900, func(_ int, on bool) byte { return map[bool]byte{false: 10, true: 70}[on] }, []int{10}},
		"a hand for half a second":   {300, func(i int, _ bool) byte { return map[bool]byte{true: 5, false: 120}[i%20 < 5] }, nil},
		"dusk flickers":              {600, func(i int, on bool) byte { return byte(38 + i%5) }, nil},
		"dusk, then flickers":        {600, func(i int, on bool) byte { return map[bool]byte{true: 39, false: byte(38 + i%5)}[i < 50] }, []int{10}},
		"a hand for five seconds":    {300, func(i int, _ bool) byte { return map[bool]byte{true: 5, false: 120}[i < 50] }, []int{10, 110}},
		"a flash is no day":          {600, func(i int, _ bool) byte { return map[bool]byte{true: 255, false: 10}[i%100 < 9] }, []int{19}},
		"black":                      {100, func(int, bool) byte { return 0 }, []int{10}},
		"just light enough":          {100, func(int, bool) byte { return 40 }, nil},
	} {
		if got := night(40, c.tenths, c.seen); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A lamp so bright that its own light looks like day puts itself out; it does so
// ever more seldom.
func TestLightThatPutsItselfOut(t *testing.T) {
	got := night(40, 10*3600, func(_ int, on bool) byte { return map[bool]byte{false: 10, true: 200}[on] })
	if len(got) < 10 || len(got) > 24 {
		t.Fatalf("%d changes in an hour: %v", len(got), got)
	}
	longest := 0
	for i := 1; i < len(got); i += 2 {
		on := got[i] - got[i-1]
		if on < longest && i < len(got)-1 {
			t.Errorf("on for %d tenths after %d", on, longest)
		}
		longest = max(longest, on)
	}
	// After a day it begins anew.
	again := night(40, 10*7200, func(i int, on bool) byte {
		if i > 10*1000 && i < 10*5000 {
			return 120
		}
		return map[bool]byte{false: 10, true: 200}[on]
	})
	after := slices.IndexFunc(again, func(i int) bool { return i >= 10*5000 })
	if after < 0 || again[after+1]-again[after] != 100 {
		t.Errorf("after a day: %v", again)
	}
}

func TestNearWhiteLevelCanBeLeft(t *testing.T) {
	if got := night(200, 300, func(i int, _ bool) byte { return map[bool]byte{true: 190, false: 255}[i < 50] }); !slices.Equal(got, []int{10, 110}) {
		t.Errorf("%v", got)
	}
}

func TestBrightnessOfOddFrames(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {3, 3}, {5, 7}, {640, 480}} {
		f := Frame{Pix: make([]byte, c[1]*(c[0]+3)), Stride: c[0] + 3, W: c[0], H: c[1]}
		for i := range f.Pix {
			f.Pix[i] = 255
			if i%f.Stride < f.W {
				f.Pix[i] = 77
			}
		}
		if got := brightness(f); got != 77 {
			t.Errorf("%v: %d", c, got)
		}
	}
	if brightness(Frame{}) != 0 {
		t.Error("nothing is not black")
	}
}

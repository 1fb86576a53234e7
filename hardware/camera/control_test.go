package camera

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// usual are the controls of a webcam, as uvcvideo names them.
func usual() []control {
	return []control{
		{cidBrightness, "Brightness", -64, 64},
		{cidPowerLine, "Power Line Frequency", 0, 2},
		{cidExposureAuto, "Auto Exposure", 0, 3},
		{cidExposure, "Exposure Time, Absolute", 3, 2047},
		{cidFocus, "Focus, Absolute", 0, 1023},
		{cidFocusAuto, "Focus, Automatic Continuous", 0, 1},
		{0x0A046D71, "LED1 Mode", 0, 3},
	}
}

func TestControlsAreSetByNameAndNumber(t *testing.T) {
	for name, c := range map[string]struct {
		want  map[string]int
		there []control
		set   []string
		told  string // in the log; "": nothing
	}{
		"none": {},
		"by hand, so not automatic": {
			want: map[string]int{"exposure": 50, "focus": 100}, there: usual(),
			set: []string{"0x9a0901=1", "0x9a090c=0", "0x9a0902=50", "0x9a090a=100"},
		},
		"automatic as configured": {
			want: map[string]int{"exposure": 50, "auto_exposure": 3, "power_line_frequency": 1}, there: usual(),
			set: []string{"0x9a0901=3", "0x9a0902=50", "0x980918=1"},
		},
		"no automatic there": {
			want: map[string]int{"focus": 7}, there: []control{{cidFocus, "Focus (absolute)", 0, 250}},
			set: []string{"0x9a090a=7"},
		},
		"by the device's name": {
			want: map[string]int{"led1_mode": 2, "exposure_time_absolute": 9}, there: usual(),
			set: []string{"0x9a0901=1", "0x9a0902=9", "0xa046d71=2"},
		},
		"by number": {
			want: map[string]int{"0x009a0902": 33}, there: usual(),
			set: []string{"0x9a0901=1", "0x9a0902=33"},
		},
		"not there": {
			want: map[string]int{"zoom": 1, "brightness": 2}, there: usual(), set: []string{"0x980900=2"},
			told: `it has none of that name, but [\"brightness\" \"power_line_frequency\" \"auto_exposure\"`,
		},
		"out of its range": {
			want: map[string]int{"brightness": 65}, there: usual(), told: "it takes -64 to 64",
		},
	} {
		f := newFake()
		f.controls = c.there
		inBubble(t, f, V4L2Options{Width: 64, Height: 48, Controls: c.want}, func(r *rig) {
			time.Sleep(3 * time.Second)
			r.state("")
			if got := f.got().values; !slices.Equal(got, c.set) {
				t.Errorf("%s: set %q, want %q", name, got, c.set)
			}
			if got := strings.Join(r.log.lines("control"), ""); (got == "") != (c.told == "") || !strings.Contains(got, c.told) {
				t.Errorf("%s: told %q", name, got)
			}
		})
	}
}

// Controls are set at each opening: a camera forgets them when it is unplugged.
// Trouble with them is told once and keeps nobody from taking pictures.
func TestControlsAreSetAgain(t *testing.T) {
	f := newFake()
	f.controls = usual()
	f.changed = func(id uint32, _ int) error {
		if id == cidFocus {
			return errors.New("permission denied")
		}
		return nil
	}
	f.frame = func(n int) error {
		if n%100 == 0 {
			return gone()
		}
		return nil
	}
	inBubble(t, f, V4L2Options{Width: 64, Height: 48, Controls: map[string]int{"brightness": 1, "focus": 2}}, func(r *rig) {
		time.Sleep(time.Minute)
		if got := f.got(); len(got.layouts) < 5 || len(got.values) != 3*len(got.layouts) {
			t.Errorf("%d times set, %d times started", len(got.values), len(got.layouts))
		}
		if got := r.log.lines("control"); len(got) != 1 || !strings.Contains(got[0], "permission denied") {
			t.Errorf("told %q", got)
		}
	})
}

package camera

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func one(w, h int) sizes { return sizes{minW: w, maxW: w, minH: h, maxH: h} }

// What the devices of these descriptions offer, and what is made of it.
func TestBestModeFirst(t *testing.T) {
	vga, hd, fullHD := one(640, 480), one(1280, 720), one(1920, 1080)
	for name, c := range map[string]struct {
		sizes map[Format][]sizes
		rates string // "FORMAT WxH=rate …"; no entry: the device does not say
		wish  wish
		want  string // the first modes, in order
	}{
		"a webcam on USB 2": {
			map[Format][]sizes{FormatYUYV: {vga, hd, fullHD}, FormatMJPEG: {vga, hd, fullHD}},
			"YUYV 640x480=30 YUYV 1280x720=10 YUYV 1920x1080=5 MJPG 640x480=30 MJPG 1280x720=30 MJPG 1920x1080=30", wish{},
			"YUYV 1280x720 at 10/s, MJPG 1280x720 at 30/s, YUYV 640x480 at 30/s, MJPG 640x480 at 30/s, MJPG 1920x1080 at 30/s, YUYV 1920x1080 at 5/s",
		},
		"its large picture is too slow": {
			map[Format][]sizes{FormatYUYV: {vga, hd}, FormatMJPEG: {vga, hd}},
			"YUYV 640x480=30 YUYV 1280x720=9 MJPG 640x480=30 MJPG 1280x720=30", wish{},
			"MJPG 1280x720 at 30/s, YUYV 640x480 at 30/s",
		},
		"only slow": {
			map[Format][]sizes{FormatYUYV: {vga, hd}}, "YUYV 640x480=7.5 YUYV 1280x720=5", wish{},
			"YUYV 1280x720 at 5/s, YUYV 640x480 at 7.5/s",
		},
		"five a second are wished for": {
			map[Format][]sizes{FormatYUYV: {vga, hd}}, "YUYV 640x480=30 YUYV 1280x720=5", wish{rate: 5},
			"YUYV 1280x720 at 5/s, YUYV 640x480 at 30/s",
		},
		"grey before all": {
			map[Format][]sizes{FormatYUYV: {hd}, FormatMJPEG: {hd}, FormatGrey: {hd}},
			"YUYV 1280x720=60 MJPG 1280x720=60 GREY 1280x720=15", wish{},
			"GREY 1280x720 at 15/s, YUYV 1280x720 at 60/s, MJPG 1280x720 at 60/s",
		},
		"a known rate before an unknown": {
			map[Format][]sizes{FormatYUYV: {hd}, FormatGrey: {hd, vga}}, "YUYV 1280x720=30", wish{},
			"YUYV 1280x720 at 30/s, GREY 1280x720, GREY 640x480",
		},
		"says nothing of sizes": {
			map[Format][]sizes{FormatYUYV: nil}, "", wish{}, "YUYV 1280x720, YUYV 640x480",
		},
		"any size": { // V4L2_FRMSIZE_TYPE_CONTINUOUS comes as zeros
			map[Format][]sizes{FormatGrey: {{}}}, "", wish{}, "GREY 1280x720, GREY 640x480",
		},
		"a range": {
			map[Format][]sizes{FormatGrey: {{32, 2592, 16, 32, 1944, 8}}}, "", wish{}, "GREY 1280x720, GREY 640x480",
		},
		"a range without steps": {
			map[Format][]sizes{FormatGrey: {{1, 4096, 0, 1, 4096, 0}}}, "", wish{}, "GREY 1280x720, GREY 640x480",
		},
		"a range that misses both": {
			map[Format][]sizes{FormatGrey: {{100, 4000, 300, 100, 4000, 300}}}, "", wish{}, "GREY 1000x700",
		},
		"a range of small ones": {
			map[Format][]sizes{FormatGrey: {{16, 352, 2, 16, 288, 2}}}, "", wish{}, "GREY 352x288",
		},
		"a range of large ones": {
			map[Format][]sizes{FormatGrey: {{1600, 3200, 2, 1200, 2400, 2}}}, "", wish{}, "GREY 1600x1200",
		},
		"other sizes": {
			map[Format][]sizes{FormatYUYV: {one(320, 240), one(800, 600), one(1024, 576), fullHD, one(3840, 2160)}}, "", wish{},
			"YUYV 1024x576, YUYV 800x600, YUYV 320x240, YUYV 1920x1080, YUYV 3840x2160",
		},
		"twice the same": {
			map[Format][]sizes{FormatYUYV: {vga, vga, hd, vga}}, "", wish{}, "YUYV 1280x720, YUYV 640x480",
		},
		"a size is wished for": {
			map[Format][]sizes{FormatYUYV: {vga, hd}, FormatMJPEG: {vga, hd}}, "", wish{width: 640, height: 480},
			"YUYV 640x480, MJPG 640x480",
		},
		"a size in a range": {
			map[Format][]sizes{FormatYUYV: {{32, 2592, 16, 32, 1944, 8}}}, "", wish{width: 800, height: 600}, "YUYV 800x600",
		},
		"a format": {
			map[Format][]sizes{FormatYUYV: {hd}, FormatMJPEG: {hd}}, "", wish{format: FormatMJPEG}, "MJPG 1280x720",
		},
		"the other name of the format": {
			map[Format][]sizes{FormatYUYV: {hd}, FormatJPEG: {hd}}, "", wish{format: FormatMJPEG}, "JPEG 1280x720",
		},
	} {
		f := newFake()
		f.formats = nil
		for format := range c.sizes {
			f.formats = append(f.formats, format)
		}
		f.sizes = c.sizes
		for _, r := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(c.rates, "GREY ", "GREY_"), "MJPG ", "MJPG_"), "YUYV ", "YUYV_")) {
			mode, rate, _ := strings.Cut(r, "=")
			var n float64
			if _, err := fmt.Sscan(rate, &n); err != nil {
				t.Fatal(err)
			}
			f.rates[strings.ReplaceAll(mode, "_", " ")] = n
		}
		modes, err := offers(&fakeDevice{f: f}, c.wish)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, m := range modes {
			got = append(got, m.String())
		}
		if all := strings.Join(got, ", "); !strings.HasPrefix(all+", ", c.want+", ") {
			t.Errorf("%s:\n got %s\nwant %s", name, all, c.want)
		}
	}
}

func TestOffersNothingOfTheWish(t *testing.T) {
	f := newFake()
	f.sizes[FormatYUYV] = []sizes{one(640, 480)}
	f.sizes[FormatMJPEG] = []sizes{one(640, 480)}
	for want, w := range map[string]wish{
		"it does not offer a picture of 800x600 in GREY, YUYV, MJPG; it has YUYV 640x480, MJPG 640x480": {width: 800, height: 600},
		"it does not offer a picture in GREY; it has YUYV 640x480, MJPG 640x480":                        {format: FormatGrey},
	} {
		if _, err := offers(&fakeDevice{f: f}, w); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f.formats = []Format{0x32314D4E, 0x38424752} // planes, and the raw Bayer pattern of a CSI camera
	if _, err := offers(&fakeDevice{f: f}, wish{}); err == nil || !strings.HasSuffix(err.Error(), "it has NM12, RGB8") {
		t.Error(err)
	}
	f.formats = []Format{FormatGrey}
	f.sizes[FormatGrey] = nil
	for i := range 20 {
		f.sizes[FormatGrey] = append(f.sizes[FormatGrey], one(100+i, 100))
	}
	if _, err := offers(&fakeDevice{f: f}, wish{width: 7, height: 5}); err == nil || !strings.HasSuffix(err.Error(), "and 12 more") {
		t.Error(err)
	}
}

func TestFormatNames(t *testing.T) {
	for _, name := range Formats() {
		if f, err := ParseFormat(strings.ToLower(name)); err != nil || f.String() != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if _, err := ParseFormat("H264"); err == nil {
		t.Error("H264 is no error")
	}
	if s := Format(0x20203859).String(); s != "Y8" {
		t.Errorf("%q", s)
	}
	if s := Format(0x1B5B0A41).String(); s != "A?[?" {
		t.Errorf("%q", s)
	}
	if !slices.IsSortedFunc(formats(), func(a, b Format) int {
		return slices.Index(formats(), a) - slices.Index(formats(), b)
	}) {
		t.Error("a format stands twice")
	}
}

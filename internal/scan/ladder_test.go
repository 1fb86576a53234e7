package scan

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A wallpaper of finder patterns would cost minutes: their triples grow with the
// third power.
func TestCrowdOfFinderPatternsIsGivenUp(t *testing.T) {
	f := canvas(1280, 720, 255)
	for y := 2; y+14 < f.H; y += 18 {
		for x := 2; x+14 < f.W; x += 18 {
			finderPattern(f, x, y, 2)
		}
	}
	r := New(Options{})
	for range 12 {
		if got, err := r.Read(f); err != nil || len(got) != 0 {
			t.Errorf("read %q, %v", got, err)
		}
		if r.Work() > r.look.most*3/2 {
			t.Fatalf("%d units of work, the budget is %d", r.Work(), r.look.most)
		}
	}
}

// What most frames cost is counted, so that a test can hold it: a wall with grain
// and a code over a quarter of the frame, in units a pixel.
func TestCommonFramesAreCheap(t *testing.T) {
	wall := canvas(1280, 720, 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range wall.Pix {
		wall.Pix[i] = byte(100 + i%1280/16 + int(rnd.Uint32()%8))
	}
	code := Frame{Pix: slices.Clone(wall.Pix), Stride: 1280, W: 1280, H: 720}
	paint(t, code, ticketText, 420, 130, 8, 20, 230, nil)
	for _, c := range []struct {
		name string
		f    Frame
		most float64
	}{{"empty", wall, 0.5}, {"easy", code, 1.8}} {
		r, sum := New(Options{}), 0
		const rounds = 50
		for range rounds {
			if _, err := r.Read(c.f); err != nil {
				t.Fatal(err)
			}
			sum += r.Work()
		}
		if each := float64(sum) / rounds / float64(c.f.W*c.f.H); each > c.most {
			t.Errorf("%s: %.2f units of work a pixel, at most %.2f", c.name, each, c.most)
		}
	}
}

// What an empty frame takes is kept from frame to frame, whatever its size.
func TestEmptyFramesAllocateNothing(t *testing.T) {
	for _, size := range [][2]int{{320, 240}, {960, 720}} {
		f := canvas(size[0], size[1], 90)
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range f.Pix {
			f.Pix[i] += byte(rnd.Uint32() % 64)
		}
		r := New(Options{})
		read := func() {
			if got, err := r.Read(f); err != nil || len(got) != 0 {
				t.Fatalf("read %q, %v", got, err)
			}
		}
		for range 25 { // until each rung has had its turn
			read()
		}
		if n := testing.AllocsPerRun(10, read); n > 10 {
			t.Errorf("%v: %v allocations a frame", size, n)
		}
	}
}

// What was found in a dear way is found at once in the next frame, though the code
// moved: the last frame's findings come first.
func TestFindingsAreRemembered(t *testing.T) {
	f := func(x int) Frame {
		f := canvas(640, 480, 100)
		paint(t, f, "A1:FAINT", x, 200, 4, 96, 104, nil) // below what the first look tells apart
		return f
	}
	r := New(Options{})
	read := func(x int) bool {
		got, err := r.Read(f(x))
		if err != nil || len(got) > 1 || len(got) == 1 && got[0] != "A1:FAINT" {
			t.Fatalf("read %q, %v", got, err)
		}
		return len(got) == 1
	}
	if read(200) {
		t.Fatal("read in the first frame: no test")
	}
	frames := 1
	for ; !read(200); frames++ {
		if frames > 100 {
			t.Fatal("never read")
		}
	}
	for i := range 10 {
		if !read(200 + 8*i) {
			t.Errorf("not read in frame %d after it was", i)
		}
	}
}

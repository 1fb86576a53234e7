package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"admitone/hardware/camera"
	"admitone/internal/scan"
)

// rounds is how often a frame is shown: more than the ladder's rungs need.
const rounds = 40

// size is a size of frame that is measured, as the corpus names it.
type size struct {
	name string
	w, h int // lying; a standing picture is turned
}

var sizes = [...]size{{"hd", 1280, 720}, {"vga", 640, 480}}

// count is what was read of some pictures at one size.
type count struct{ one, all, cpp, gozxing int }

type tally struct {
	sets  []string
	n     map[string]int
	count map[string]*[len(sizes)]count
	first [len(sizes)]struct {
		ms   []float64
		work []int
	}
	accepted map[string][]string // of each set
	strange  []strange
	unread   []string
}

// strange is a text that is not accepted for a picture whose truth is known.
type strange struct{ set, name, size, text string }

func newTally() *tally {
	return &tally{n: map[string]int{}, count: map[string]*[len(sizes)]count{}, accepted: map[string][]string{}}
}

// add reads one picture at all sizes.
func (t *tally) add(e entry, corpus string) error {
	picture, err := camera.ReadFile(filepath.Join(corpus, "frames", e.Set, e.Name+".png"))
	if err != nil {
		return err
	}
	if t.count[e.Set] == nil {
		t.sets, t.count[e.Set] = append(t.sets, e.Set), new([len(sizes)]count)
	}
	if e.Truth != "empty" {
		t.n[e.Set]++
	}
	t.accepted[e.Set] = append(t.accepted[e.Set], e.Texts...)
	for i, s := range sizes {
		f := picture.Fit(s.w, s.h)
		if picture.H > picture.W {
			f = picture.Fit(s.h, s.w)
		}
		c := &t.count[e.Set][i]
		if e.Others["zxing_cpp_"+s.name] {
			c.cpp++
		}
		if e.Others["gozxing_"+s.name] {
			c.gozxing++
		}
		if err := t.read(e, i, c, scan.Frame{Pix: f.Pix, Stride: f.Stride, W: f.W, H: f.H}); err != nil {
			return fmt.Errorf("%s/%s at %s: %w", e.Set, e.Name, s.name, err)
		}
	}
	return nil
}

func (t *tally) read(e entry, i int, c *count, f scan.Frame) error {
	r := scan.New(scan.Options{})
	for round := range rounds {
		began := time.Now()
		texts, err := r.Read(f)
		if err != nil {
			return err
		}
		if round == 0 {
			first := &t.first[i]
			first.ms = append(first.ms, float64(time.Since(began).Microseconds())/1000)
			first.work = append(first.work, r.Work())
		}
		read := false
		for _, text := range texts {
			if e.accepts(text) {
				read = true
			} else if e.Truth != "none" {
				t.strange = append(t.strange, strange{e.Set, e.Name, sizes[i].name, text})
			}
		}
		if read && round == 0 {
			c.one++
		}
		if read {
			c.all++
		}
		if len(texts) > 0 {
			return nil
		}
	}
	t.unread = append(t.unread, fmt.Sprintf("%s/%s %s (%s)", e.Set, e.Name, sizes[i].name, e.Truth))
	return nil
}

func (t *tally) print(w io.Writer, unread bool) {
	fmt.Fprintln(w, "                              1280x720                     640x480")
	fmt.Fprintln(w, "set                    n    one  all  cpp  gozxing       one  all  cpp  gozxing")
	var n int
	var sum [len(sizes)]count
	line := func(name string, n int, c *[len(sizes)]count) {
		fmt.Fprintf(w, "%-20s %3d", name, n)
		for _, s := range c {
			fmt.Fprintf(w, "   %4d %4d %4d %5d   ", s.one, s.all, s.cpp, s.gozxing)
		}
		fmt.Fprintln(w)
	}
	for _, set := range t.sets {
		c := t.count[set]
		line(set, t.n[set], c)
		n += t.n[set]
		for i := range sum {
			sum[i].one += c[i].one
			sum[i].all += c[i].all
			sum[i].cpp += c[i].cpp
			sum[i].gozxing += c[i].gozxing
		}
	}
	line("all", n, &sum)
	for i, s := range sizes {
		first := t.first[i]
		slices.Sort(first.ms)
		slices.Sort(first.work)
		m := len(first.ms)
		fmt.Fprintf(w, "\none frame of %dx%d: %.1f ms in the middle, 9 of 10 within %.1f, most %.1f; most work %.1f times that in the middle\n",
			s.w, s.h, first.ms[m/2], first.ms[m*9/10], first.ms[m-1], float64(first.work[m-1])/float64(first.work[m/2]))
	}
	t.printStrange(w)
	if unread {
		fmt.Fprintln(w, "\nunread:")
		for _, name := range t.unread {
			fmt.Fprintln(w, " ", name)
		}
	}
}

// printStrange lists what is not accepted. In a picture of several codes, what is
// accepted is what other readers could read there: a text that they read in another
// picture of the set is one more of its codes.
func (t *tally) printStrange(w io.Writer) {
	misread, more := 0, 0
	for _, s := range t.strange {
		if slices.Contains(t.accepted[s.set], spelled(s.text)) {
			more++
			continue
		}
		misread++
		fmt.Fprintf(w, "\nnot accepted: %s/%s at %s: %q", s.set, s.name, s.size, s.text)
	}
	fmt.Fprintf(w, "\n%d texts that are not accepted; and %d of codes that others read in other pictures of the set\n", misread, more)
}

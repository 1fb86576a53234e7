package boltfile

import "testing"

// TestDoubtful: one damaged meta page of two opens, and the file says so; none is no
// doubt, and two are damage.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	content, path := made(t), temp(t)
	for _, pages := range [][]int{nil, {0}, {1}, {0, 1}} {
		for _, p := range pages {
			content[p*pageSize+metaAt+50] ^= 4
		}
		write(t, path, content)
		f, err := Open(t.Context(), path, small())
		switch {
		case len(pages) == 2:
			if !damaged(err) {
				t.Errorf("both meta pages: %v, want damage", err)
			}
		case err != nil:
			t.Errorf("meta pages %v: %v", pages, err)
		case f.Doubtful() != (len(pages) == 1):
			t.Errorf("meta pages %v: doubtful %v", pages, f.Doubtful())
		}
		if err == nil {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range pages {
			content[p*pageSize+metaAt+50] ^= 4
		}
	}
}

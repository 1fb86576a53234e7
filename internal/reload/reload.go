// Package reload keeps what was read from files up to date while a process runs:
// keys, secrets, certificates. It looks at the files every second, which costs
// nothing and, unlike notifications, works through symbolic links, mounts and
// renames. What cannot be read leaves the old in force and says so, once.
package reload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// Options of a watcher. Load and Log are required.
type Options struct {
	Name string // what is read, for log lines

	// Load reads the files and puts what they say in force, or returns an error
	// and leaves everything as it was. It gives the files to look at from then
	// on, with an error, too, where it knows them.
	Load func() (files []string, err error)

	Every time.Duration // between two looks; default 1 s
	Log   *slog.Logger
}

// Watcher loads again when a file changes.
type Watcher struct {
	opt    Options
	files  []string
	stamps []stamp
	failed string // what the last load said, "" where it was good
}

// stamp is what a change of a file shows in.
type stamp struct {
	info os.FileInfo // nil: it could not be looked at
}

func (a stamp) same(b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	return os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Mode() == b.info.Mode()
}

// New loads once and returns the error of that.
func New(o Options) (*Watcher, error) {
	if o.Load == nil || o.Log == nil {
		return nil, errors.New("watch files: a function that loads and a log are required")
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	w := &Watcher{opt: o}
	files, err := o.Load()
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	// A change between the load and the stamps would go unseen, so the first look
	// finds nothing that it knows and loads again.
	w.files, w.stamps = files, make([]stamp, len(files))
	return w, nil
}

// Run looks until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(w.opt.Every)
	defer tick.Stop()
	for {
		w.Look()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look loads where a file changed since the last look, or where the last load
// failed: a pair of files may be half replaced. It is for one goroutine at a time.
func (w *Watcher) Look() {
	now := w.look()
	if w.failed == "" && slices.EqualFunc(now, w.stamps, stamp.same) {
		return
	}
	first := !slices.ContainsFunc(w.stamps, func(s stamp) bool { return s.info != nil })
	w.stamps = now // from before the load: what changes during it is seen at the next look
	files, err := w.opt.Load()
	if len(files) > 0 && !slices.Equal(files, w.files) {
		w.files = files
		w.stamps = make([]stamp, len(files))
	}
	switch {
	case err != nil && err.Error() != w.failed:
		w.failed = err.Error()
		w.opt.Log.Error("what changed cannot be used; the old stays in force", "what", w.opt.Name, "err", err)
	case err == nil:
		w.failed = ""
		if !first {
			w.opt.Log.Info("read anew", "what", w.opt.Name)
		}
	}
}

func (w *Watcher) look() []stamp {
	out := make([]stamp, len(w.files))
	for i, f := range w.files {
		if info, err := os.Stat(f); err == nil {
			out[i].info = info
		}
	}
	return out
}

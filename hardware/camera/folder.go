package camera

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// FolderOptions say what a Folder shows, and how often.
type FolderOptions struct {
	Dir  string       // must exist when the folder camera is made
	Rate int          // frames a second, 1 to 100; 10 where zero
	Log  *slog.Logger // discarded where nil
}

const (
	defaultRate = 10  // frames a second
	maxRate     = 100 // frames a second
)

// Folder is a camera in front of which a picture is held by putting it into a
// directory: it shows the PNG or JPEG whose name sorts last. No picture there is
// darkness; so is one that cannot be read. Names that begin with a dot are passed
// over: write under such a name and rename, and no half picture is ever seen.
type Folder struct {
	dir   string
	every time.Duration
	log   *slog.Logger

	state atomic.Pointer[error] // of the directory; nil: it can be read

	told  map[string]fs.FileInfo // files reported, as they were then; nil: by name alone
	shown fs.FileInfo            // the file that the scene was decoded from, or nil
	scene Frame                  // the picture, or darkness
}

// NewFolder returns a folder camera. It returns an error when the directory cannot
// be read or the rate is out of range.
func NewFolder(o FolderOptions) (*Folder, error) {
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	if o.Rate < 1 || o.Rate > maxRate {
		return nil, fmt.Errorf("open folder camera: %d frames a second, want 1 to %d", o.Rate, maxRate)
	}
	if _, err := os.ReadDir(o.Dir); err != nil {
		return nil, fmt.Errorf("open folder camera: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Folder{
		dir: o.Dir, every: time.Second / time.Duration(o.Rate), log: o.Log,
		told: map[string]fs.FileInfo{}, scene: darkness(),
	}, nil
}

func darkness() Frame {
	return Frame{Pix: make([]byte, darkWidth*darkHeight), Stride: darkWidth, W: darkWidth, H: darkHeight}
}

// Run shows what is in the directory until ctx is cancelled, and returns nil.
// Trouble with files is logged once for each state of a file, and is never the
// camera's end.
func (c *Folder) Run(ctx context.Context, out func(Frame)) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	var buf []byte // out may do to a frame what it likes, so it gets a copy each time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		c.look()
		buf = append(buf[:0], c.scene.Pix...)
		frame := c.scene
		frame.Pix, frame.Captured = buf, time.Now()
		out(frame)
	}
}

// State is nil while the directory can be read: a picture that cannot is darkness,
// as is none.
func (c *Folder) State() error {
	if err := c.state.Load(); err != nil {
		return *err
	}
	return nil
}

// look decodes the picture that is to be seen, if it is not the one seen already.
func (c *Folder) look() {
	newest := c.newest()
	if unchanged(newest, c.shown) {
		return
	}
	c.shown, c.scene = newest, darkness()
	if newest == nil {
		return
	}
	frame, err := ReadFile(filepath.Join(c.dir, newest.Name()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.shown = nil // removed since the listing: that is no fault
	case err != nil:
		c.tell(newest.Name(), newest, "skip picture", err)
	default:
		c.scene = frame.Fit(MaxWidth, MaxHeight)
	}
}

// unchanged tells whether two looks at a file saw the same. A file that was moved
// into the place of another may have its size and its time, but is another file.
func unchanged(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Name() == b.Name() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// newest returns the last picture by name, or nil where there is none. It lists
// and stats; it opens nothing.
func (c *Folder) newest() fs.FileInfo {
	entries, err := os.ReadDir(c.dir) // sorted by name
	if err != nil {
		err = fmt.Errorf("read camera folder: %w", err)
		c.state.Store(&err)
		c.tell(".", nil, "no camera folder", err)
		return nil
	}
	c.state.Store(nil)
	c.sortOut(entries)
	for _, e := range slices.Backward(entries) {
		if !isPictureName(e.Name()) {
			continue
		}
		info, err := os.Stat(filepath.Join(c.dir, e.Name())) // follows links
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since the listing
		case err != nil:
			c.tell(e.Name(), nil, "skip picture", err)
		case !info.Mode().IsRegular():
			c.tell(e.Name(), nil, "skip picture", errors.New("not a file"))
		default:
			return info
		}
	}
	return nil
}

// sortOut reports files that are no pictures by their names, and forgets what was
// reported of files that are gone.
func (c *Folder) sortOut(entries []fs.DirEntry) {
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
		if !isPictureName(e.Name()) && !isHidden(e.Name()) {
			c.tell(e.Name(), nil, "skip file", ErrNotPicture)
		}
	}
	for name := range c.told {
		if !there[name] {
			delete(c.told, name)
		}
	}
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

func isPictureName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg":
		return !isHidden(name)
	}
	return false
}

// tell logs trouble with a file, unless it was told of this state of it before.
func (c *Folder) tell(name string, state fs.FileInfo, msg string, err error) {
	if before, ok := c.told[name]; ok && unchanged(before, state) {
		return
	}
	c.told[name] = state
	c.log.Warn(msg, "file", name, "err", err)
}

package camera

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func greyPicture(w, h int, level byte) *image.Gray {
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = level
	}
	return m
}

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stage is a folder camera over a directory of its own, in a synctest bubble.
type stage struct {
	t   *testing.T
	dir string
	log bytes.Buffer
	cam *Folder
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, dir: t.TempDir()}
	var err error
	s.cam, err = NewFolder(FolderOptions{Dir: s.dir, Log: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// past is the time that all files of a stage get: pictures are told apart without.
var past = time.Unix(1_000_000_000, 0)

// put moves a file into the directory.
func (s *stage) put(name string, data []byte) {
	s.t.Helper()
	tmp := filepath.Join(s.dir, ".put")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(tmp, past, past); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) remove(names ...string) {
	s.t.Helper()
	for _, n := range names {
		if err := os.Remove(filepath.Join(s.dir, n)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// play runs the camera for n frames; before each, at is called with its number.
func (s *stage) play(n int, at func(i int), seen func(i int, f Frame)) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	i := 0
	at(0)
	err := s.cam.Run(ctx, func(f Frame) {
		seen(i, f)
		if i++; i == n {
			cancel()
			return
		}
		at(i)
	})
	if err != nil {
		s.t.Errorf("Run: %v", err)
	}
}

func level(f Frame) byte { return f.Pix[(f.H/2)*f.Stride+f.W/2] }

func TestShowsTheLastPictureByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		low, mid, top := pngOf(t, greyPicture(64, 48, 50)), jpegOf(t, greyPicture(64, 48, 100)), pngOf(t, greyPicture(64, 48, 150))
		want := []byte{0, 50, 100, 100, 50, 0, 150}
		s.play(len(want), func(i int) {
			switch i {
			case 1:
				s.put("010.png", low)
			case 2:
				s.put("020.JPG", mid)
			case 3:
				s.put("005.png", top) // earlier by name: behind the other
			case 4:
				s.remove("020.JPG")
			case 5:
				s.remove("010.png")
				s.remove("005.png")
			case 6:
				s.put("a.jpeg", top)
			}
		}, func(i int, f Frame) {
			if got := level(f); got != want[i] {
				t.Errorf("frame %d shows %d, want %d", i, got, want[i])
			}
		})
		if s.log.Len() > 0 {
			t.Errorf("logged %s", &s.log)
		}
	})
}

func TestNoticesAPictureReplacedUnderItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.put("a.png", pngOf(t, greyPicture(64, 48, 50)))
		s.play(3, func(i int) {
			if i == 2 {
				s.put("a.png", pngOf(t, greyPicture(64, 48, 90)))
			}
		}, func(i int, f Frame) {
			if want := []byte{50, 50, 90}[i]; level(f) != want {
				t.Errorf("frame %d shows %d, want %d", i, level(f), want)
			}
		})
	})
}

func TestDecodesOncePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.put("a.png", pngOf(t, greyPicture(64, 48, 50)))
		var pix *byte
		s.play(20, func(int) {}, func(i int, f Frame) {
			if i > 0 && &s.cam.scene.Pix[0] != pix {
				t.Errorf("frame %d: decoded again", i)
			}
			pix = &s.cam.scene.Pix[0]
		})
	})
}

func TestFramesComeAtTheRateWithTheirMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		start := time.Now()
		s.play(25, func(int) {}, func(i int, f Frame) {
			if got, want := f.Captured.Sub(start), time.Duration(i+1)*100*time.Millisecond; got != want {
				t.Errorf("frame %d captured after %v, want %v", i, got, want)
			}
		})
	})
}

func TestBusyReceiverGetsNoQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.play(5, func(int) {}, func(i int, f Frame) {
			if late := time.Since(f.Captured); late != 0 {
				t.Errorf("frame %d is %v old", i, late)
			}
			<-time.After(time.Second)
		})
	})
}

func TestFrameBelongsToItsReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.put("a.png", pngOf(t, greyPicture(64, 48, 50)))
		var first *byte
		s.play(3, func(int) {}, func(i int, f Frame) {
			if level(f) != 50 {
				t.Errorf("frame %d shows %d", i, level(f))
			}
			clear(f.Pix)
			if i == 0 {
				first = &f.Pix[0]
			} else if &f.Pix[0] != first {
				t.Errorf("frame %d: another buffer", i)
			}
		})
	})
}

func TestUnreadableFilesAreDarknessAndToldOnce(t *testing.T) {
	good := pngOf(t, greyPicture(64, 48, 50))
	huge := bytes.Clone(good)
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65536 x 65536
	putCRC(huge)
	for name, data := range map[string][]byte{
		"no picture": []byte("hello, this is text"), "empty": {}, "cut off": good[:len(good)-20],
		"cut off jpeg": jpegOf(t, greyPicture(64, 48, 50))[:300], "huge": huge,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			s.put("a.png", good)
			s.put("b.png", data)
			s.put("notes.txt", []byte("hello"))
			s.put(".c.png", good)
			s.play(10, func(i int) {
				if i == 8 {
					s.remove("b.png")
				}
			}, func(i int, f Frame) {
				if want := []byte{0, 50}[i/8]; level(f) != want || f.W*f.H == 0 {
					t.Errorf("%s: frame %d shows %d, want %d", name, i, level(f), want)
				}
			})
			log := s.log.String()
			if strings.Count(log, "file=b.png") != 1 || strings.Count(log, "file=notes.txt") != 1 || strings.Count(log, "\n") != 2 {
				t.Errorf("%s: logged\n%s", name, log)
			}
			if len(s.cam.told) != 1 {
				t.Errorf("%s: remembers %d reports, want only that of the file still there", name, len(s.cam.told))
			}
		})
	}
}

func TestLargePicturesAreAveragedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.put("a.jpg", jpegOf(t, greyPicture(2000, 1500, 80)))
		s.play(1, func(int) {}, func(_ int, f Frame) {
			if f.W != 960 || f.H != 720 || level(f) != 80 {
				t.Errorf("%d x %d showing %d", f.W, f.H, level(f))
			}
		})
	})
}

func TestRewrittenInPlace(t *testing.T) {
	s := newStage(t)
	s.put("a.png", pngOf(t, greyPicture(64, 48, 50)))
	s.cam.look()
	data := pngOf(t, greyPicture(64, 48, 90))
	if err := os.WriteFile(filepath.Join(s.dir, "a.png"), data, 0o600); err != nil { // has the time of now
		t.Fatal(err)
	}
	if s.cam.look(); level(s.cam.scene) != 90 {
		t.Errorf("shows %d", level(s.cam.scene))
	}
}

func TestHiddenFilesAreNotSeen(t *testing.T) {
	s := newStage(t)
	s.put(".a.png", pngOf(t, greyPicture(64, 48, 50)))
	if s.cam.look(); level(s.cam.scene) != 0 || s.log.Len() != 0 {
		t.Errorf("shows %d, logged %s", level(s.cam.scene), &s.log)
	}
}

func TestDirectoryThatGoesAndComes(t *testing.T) {
	s := newStage(t)
	s.put("a.png", pngOf(t, greyPicture(64, 48, 50)))
	s.cam.look()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if s.cam.look(); level(s.cam.scene) != 0 {
			t.Errorf("shows %d without a directory", level(s.cam.scene))
		}
	}
	if log := s.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "read camera folder") {
		t.Errorf("logged\n%s", log)
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.put("a.png", pngOf(t, greyPicture(64, 48, 70)))
	if s.cam.look(); level(s.cam.scene) != 70 {
		t.Errorf("shows %d", level(s.cam.scene))
	}
}

func TestNewFolderRefuses(t *testing.T) {
	if _, err := NewFolder(FolderOptions{Dir: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a directory that is not there is no error")
	}
	for _, rate := range []int{-1, 101} {
		if _, err := NewFolder(FolderOptions{Dir: t.TempDir(), Rate: rate}); err == nil {
			t.Errorf("rate %d is no error", rate)
		}
	}
	if c, err := NewFolder(FolderOptions{Dir: t.TempDir()}); err != nil || c.every != 100*time.Millisecond {
		t.Errorf("default rate: %v, %v", c, err)
	}
}

var _ Source = (*Folder)(nil)

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"admitone/internal/ticket"
)

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The demonstration of make run: every picture gives what frames.json says, from
// the pixels to the relay, and nothing is left behind.
func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out lockedBuffer
	ended := make(chan error, 1)
	go func() {
		ended <- demonstrate(ctx, bin, filepath.Join("..", "..", "testdata", "frames"), Terminal{Out: &out, Verdict: func(v ticket.Verdict) error {
			_, err := fmt.Fprintln(&out, v.Gate, v.Ticket, v.Reason)
			return err
		}})
	}()
	err := await(ctx, "the last picture", func(context.Context) error {
		select {
		case err := <-ended:
			stop()
			return fmt.Errorf("it ended: %w", err)
		default:
		}
		if !strings.Contains(out.String(), "pictures were shown") {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if err != nil || !strings.Contains(out.String(), "All 24 pictures were shown; 0 did not give") {
		t.Errorf("%v\n%s", err, out.String())
	}
	stop()
	if err == nil {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "admitone-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

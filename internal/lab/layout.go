package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Event is what the lab's own programme has on; its tickets are for it.
const Event = "lab"

// layout gives the paths below a lab's directory. Outsiders rely on those that
// spec section 10 names.
type layout struct{ dir string }

func (l layout) path(name ...string) string {
	return filepath.Join(append([]string{l.dir}, name...)...)
}

func (l layout) gate(k int, name ...string) string {
	return l.path(append([]string{"gate-" + strconv.Itoa(k)}, name...)...)
}

func (l layout) url() string      { return l.path("ledger.url") }
func (l layout) readKey() string  { return l.path("keys", "admin") }
func (l layout) orderKey() string { return l.path("keys", "box-office") }
func (l layout) handKey() string  { return l.path("keys", "hand-held") }
func (l layout) signKey() string  { return l.path("keys", "admin-sign") }
func (l layout) mintKey() string  { return l.path("keys", "ticket") }

// socket gives a path for a Unix socket, which the kernel allows 107 bytes: below
// the lab's directory, or in the system's temporary one where that is too long.
func (l layout) socket(name string) string {
	const most = 100
	if p := l.path(name); len(p) <= most {
		return p
	}
	h := sha256.Sum256([]byte(l.dir))
	flat := "lab-" + hex.EncodeToString(h[:6]) + "-" + strings.ReplaceAll(name, string(filepath.Separator), "-")
	if p := filepath.Join(os.TempDir(), flat); len(p) <= most {
		return p
	}
	return filepath.Join("/tmp", flat)
}

func (l layout) labSocket() string { return l.socket("lab.sock") }
func (l layout) gateSocket(k int) string {
	return l.socket(filepath.Join("gate-"+strconv.Itoa(k), "control.sock"))
}

// newLayout takes a directory that is empty or not there yet.
func newLayout(dir string) (layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("open lab: %w", err)
	}
	l := layout{dir: abs}
	entries, err := os.ReadDir(abs)
	if err != nil && !os.IsNotExist(err) {
		return l, fmt.Errorf("open lab: %w", err)
	}
	if len(entries) > 0 {
		return l, fmt.Errorf("open lab: %s is not empty; name a new directory (or end the lab in it with `scripts/lab down %s`, and remove it)", abs, dir)
	}
	return l, os.MkdirAll(l.path("keys"), 0o700)
}

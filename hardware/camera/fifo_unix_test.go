//go:build unix

package camera

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a FIFO waits for its writer: it must not be opened at all.
func TestFIFOIsNoPicture(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo.png")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(fifo); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("ReadFile: %v", err)
	}
	c, err := NewFolder(FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c.look()
	if len(c.told) != 1 || level(c.scene) != 0 {
		t.Errorf("told of %d files", len(c.told))
	}
}

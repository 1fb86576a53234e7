package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteNew: the file is as it was given, nothing else is left, and what is there
// is not overwritten. That a power cut leaves all or nothing is proven in crashtest.
func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := WriteNew(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(file, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v, want ErrExist", err)
	}
	b, err := os.ReadFile(file)
	if err != nil || string(b) != "one" {
		t.Errorf("the file holds %q (%v)", b, err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode() != 0o600 {
		t.Errorf("its mode is %v (%v)", st.Mode(), err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("the folder holds %v (%v)", all, err)
	}
	if err := WriteNew(filepath.Join(dir, "none", "key"), nil, 0o600); err == nil {
		t.Error("a file in no folder was written")
	}
}

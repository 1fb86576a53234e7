package hil

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// archive builds an initial file system as the kernel unpacks it: a cpio archive
// of the form "newc" (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	b     bytes.Buffer
	inode int
	dirs  map[string]bool
}

// File types, as in stat(2).
const (
	modeDir  = 0o040000
	modeFile = 0o100000
)

// file adds a file and the directories it lies in.
func (a *archive) file(name string, mode int, data []byte) {
	name = strings.TrimPrefix(name, "/")
	a.dir(path.Dir(name))
	a.entry(name, modeFile|mode, data)
}

func (a *archive) dir(name string) {
	name = strings.TrimPrefix(name, "/")
	if name == "." || name == "" || a.dirs[name] {
		return
	}
	a.dir(path.Dir(name))
	if a.dirs == nil {
		a.dirs = map[string]bool{}
	}
	a.dirs[name] = true
	a.entry(name, modeDir|0o755, nil)
}

// entry writes a header of thirteen numbers, the name and the content, each filled
// up to a multiple of 4 bytes. Everything is root's.
func (a *archive) entry(name string, mode int, data []byte) {
	a.inode++
	fmt.Fprintf(&a.b, "070701")
	for _, n := range []int{a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(&a.b, "%08x", n)
	}
	a.b.WriteString(name)
	a.b.WriteByte(0)
	a.fill()
	a.b.Write(data)
	a.fill()
}

func (a *archive) fill() {
	for a.b.Len()%4 != 0 {
		a.b.WriteByte(0)
	}
}

// bytes ends the archive.
func (a *archive) bytes() []byte {
	a.inode = -1
	a.entry("TRAILER!!!", 0, nil)
	return a.b.Bytes()
}

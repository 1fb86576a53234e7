package crashtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// handle is an open file.
type handle struct {
	f    *os.File
	d    *Disk
	id   int
	path string
}

func (h *handle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if errno := h.d.before("read", h.path); errno != 0 {
		return nil, errno
	}
	n, err := unix.Pread(int(h.f.Fd()), dest, off)
	if err != nil {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := h.d.before("write", h.path); errno != 0 {
		return 0, errno
	}
	e := Event{Kind: Write, File: h.id, Off: off, Data: bytes.Clone(data)}
	return uint32(len(data)), h.d.do(e, func() error {
		_, err := h.f.WriteAt(data, off)
		return err
	})
}

func (h *handle) truncate(size int64) syscall.Errno {
	if errno := h.d.before("truncate", h.path); errno != 0 {
		return errno
	}
	return h.d.do(Event{Kind: Truncate, File: h.id, Off: size}, func() error { return h.f.Truncate(size) })
}

// dataOnly is the flag by which the kernel tells fdatasync from fsync
// (FUSE_FSYNC_FDATASYNC of linux/fuse.h).
const dataOnly = 1

func (h *handle) flush(data bool) syscall.Errno {
	name := "fsync"
	if data {
		name = "fdatasync"
	}
	return h.d.flush(name, h.path, Event{Kind: Flush, File: h.id})
}

// Allocate is fs.FileAllocater: reserved blocks are no content.
func (h *handle) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	if mode&unix.FALLOC_FL_KEEP_SIZE == 0 {
		return syscall.EOPNOTSUPP
	}
	return 0
}

func (h *handle) Flush(ctx context.Context) syscall.Errno { return 0 }

func (h *handle) Release(ctx context.Context) syscall.Errno {
	if err := h.f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fs.ToErrno(err)
	}
	return 0
}

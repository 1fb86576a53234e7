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
	errno := h.d.flush(name, h.path, Event{Kind: Flush, File: h.id})
	if errno != 0 && h.d.o.Lossy {
		if err := h.lose(); err != nil {
			return fs.ToErrno(err)
		}
	}
	return errno
}

// lose takes the file back to what was flushed last.
func (h *handle) lose() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	rec := h.d.o.Log.Recording("")
	r := NewReplay(rec)
	for r.at < len(rec.Events) {
		r.step()
	}
	if err := h.f.Truncate(0); err != nil {
		return err
	}
	m := r.durable.files[h.id]
	if err := m.copyTo(h.f); err != nil {
		return err
	}
	h.d.o.Log.Add(Event{Kind: Lost, File: h.id, Upto: len(rec.Events)})
	return nil
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

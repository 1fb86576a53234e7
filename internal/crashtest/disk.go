package crashtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Call is one call that a program is making.
type Call struct {
	Name string // open, create, read, write, truncate, fsync, fdatasync, flushdir, rename, link, unlink
	Path string // below the disk's root
}

// Fault is asked before each call is done. An error is what the call gives instead.
type Fault func(Call) syscall.Errno

// Options of a disk.
type Options struct {
	Log  *Log          // where changes are told; nil: nowhere
	Slow time.Duration // how long each flush takes, as on a card

	// Lossy has a flush that fails lose what it was to flush, while the kernel goes on
	// showing it to whoever reads, as Linux does: the pages count as clean then
	// (Rebello et al., Can Applications Recover from fsync Failures?, ATC 2020).
	Lossy bool
}

// keep is what an opened file's cache is told: on a lossy disk, that nothing has
// changed.
func (d *Disk) keep() uint32 {
	if d.o.Lossy {
		return fuse.FOPEN_KEEP_CACHE
	}
	return 0
}

// Disk is a mounted folder. What it holds lies in another folder.
type Disk struct {
	Dir    string // where programs see it
	back   string
	o      Options
	server *fuse.Server

	mu    sync.Mutex
	fault Fault
	ids   map[uint64]int // files' numbers by their inodes
	files int
}

// Mount makes the folders dir/disk, where programs see the disk, and dir/back,
// where its files are.
func Mount(dir string, o Options) (*Disk, error) {
	if o.Log == nil {
		o.Log = &Log{}
	}
	d := &Disk{Dir: filepath.Join(dir, "disk"), back: filepath.Join(dir, "back"), o: o, ids: map[uint64]int{}}
	for _, p := range []string{d.Dir, d.back} {
		if err := os.MkdirAll(p, 0o755); err != nil {
			return nil, fmt.Errorf("mount disk: %w", err)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(d.back, &st); err != nil {
		return nil, fmt.Errorf("mount disk: %w", err)
	}
	root := &fs.LoopbackRoot{Path: d.back, Dev: st.Dev}
	top := &node{LoopbackNode: fs.LoopbackNode{RootData: root}, d: d}
	root.RootNode = top
	if err := haveDevice(); err != nil {
		return nil, fmt.Errorf("mount disk: %w", err)
	}
	var err error
	d.server, err = fs.Mount(d.Dir, top, &fs.Options{MountOptions: fuse.MountOptions{
		FsName: "crashtest", Name: "crashtest", DirectMount: true, MaxWrite: 1 << 20, ExplicitDataCacheControl: o.Lossy,
	}})
	if err != nil {
		return nil, fmt.Errorf("mount disk (it takes /dev/fuse, and root or fusermount3): %w", err)
	}
	return d, nil
}

// haveDevice makes /dev/fuse where a container has none: its numbers are fixed (the
// kernel's devices.txt).
func haveDevice() error {
	const device = "/dev/fuse"
	if _, err := os.Stat(device); err == nil || os.Getuid() != 0 {
		return nil
	}
	return unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229)))
}

// Close unmounts the disk; no program may have files open there.
func (d *Disk) Close() error { return d.server.Unmount() }

// Back is where the files really are, for a look that no fault disturbs.
func (d *Disk) Back(name ...string) string {
	return filepath.Join(append([]string{d.back}, name...)...)
}

// Recall forgets what was told before, and tells of the files in a folder as they are
// now, as if they had just been made and flushed.
func (d *Disk) Recall(folder string) error {
	all, err := os.ReadDir(d.Back(folder))
	if err != nil {
		return fmt.Errorf("recall disk: %w", err)
	}
	d.o.Log.Reset()
	for _, e := range all {
		p := filepath.Join(folder, e.Name())
		content, err := os.ReadFile(d.Back(p))
		if err != nil {
			return fmt.Errorf("recall disk: %w", err)
		}
		var st syscall.Stat_t
		if err := syscall.Stat(d.Back(p), &st); err != nil {
			return fmt.Errorf("recall disk: %w", err)
		}
		d.mu.Lock()
		id := d.number(st.Ino, true)
		d.mu.Unlock()
		d.o.Log.Add(Event{Kind: Create, File: id, Path: p})
		next := d.o.Log.Add(Event{Kind: Write, File: id, Data: content}) + 1
		d.o.Log.Add(Event{Kind: Flush, File: id, Upto: next})
	}
	d.o.Log.Add(Event{Kind: FlushDir, Path: folder, Upto: d.o.Log.Next()})
	return nil
}

// SetFault replaces what is asked before each call; nil: nothing.
func (d *Disk) SetFault(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

func (d *Disk) before(name, path string) syscall.Errno {
	d.mu.Lock()
	f := d.fault
	d.mu.Unlock()
	if f == nil {
		return 0
	}
	return f(Call{name, path})
}

// do does a change and tells it, so that changes are told in the order in which
// they were done.
func (d *Disk) do(e Event, change func() error) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := change(); err != nil {
		return fs.ToErrno(err)
	}
	d.o.Log.Add(e)
	return 0
}

// number gives a file's number, or a new one.
func (d *Disk) number(inode uint64, fresh bool) int {
	if n, ok := d.ids[inode]; ok && !fresh {
		return n
	}
	d.files++
	d.ids[inode] = d.files
	return d.files
}

// node is a file or folder.
type node struct {
	fs.LoopbackNode
	d *Disk
}

// WrapChild is fs.NodeWrapChilder: what is in a folder of ours is ours.
func (n *node) WrapChild(ctx context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, d: n.d}
}

func (n *node) path() string { return n.Path(n.Root()) }

// Rename is fs.NodeRenamer. The nodes of others cannot come here.
func (n *node) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	from, target := filepath.Join(n.path(), name), filepath.Join(to.EmbeddedInode().Path(n.Root()), newName)
	if errno := n.d.before("rename", from); errno != 0 {
		return errno
	}
	if flags != 0 {
		return syscall.EINVAL
	}
	var st syscall.Stat_t
	if err := syscall.Lstat(n.d.Back(from), &st); err != nil {
		return fs.ToErrno(err)
	}
	n.d.mu.Lock()
	id := n.d.number(st.Ino, false)
	n.d.mu.Unlock()
	return n.d.do(Event{Kind: Rename, File: id, Path: from, To: target}, func() error {
		return syscall.Rename(n.d.Back(from), n.d.Back(target))
	})
}

// Unlink is fs.NodeUnlinker.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	p := filepath.Join(n.path(), name)
	if errno := n.d.before("unlink", p); errno != 0 {
		return errno
	}
	return n.d.do(Event{Kind: Unlink, Path: p}, func() error { return syscall.Unlink(n.d.Back(p)) })
}

// Link is fs.NodeLinker: one more name of a file.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	p := filepath.Join(n.path(), name)
	if errno := n.d.before("link", p); errno != 0 {
		return nil, errno
	}
	inode, errno := n.LoopbackNode.Link(ctx, target, name, out)
	if errno != 0 {
		return nil, errno
	}
	n.d.mu.Lock()
	id := n.d.number(out.Attr.Ino, false)
	n.d.mu.Unlock()
	n.d.o.Log.Add(Event{Kind: Create, File: id, Path: p})
	return inode, 0
}

// Create is fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	p := filepath.Join(n.path(), name)
	if errno := n.d.before("create", p); errno != 0 {
		return nil, nil, 0, errno
	}
	inode, fh, ff, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	fh.(fs.FileReleaser).Release(ctx)
	f, err := os.OpenFile(n.d.Back(p), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, 0, fs.ToErrno(err)
	}
	n.d.mu.Lock()
	id := n.d.number(out.Attr.Ino, true)
	n.d.mu.Unlock()
	n.d.o.Log.Add(Event{Kind: Create, File: id, Path: p})
	return inode, &handle{f: f, d: n.d, id: id, path: p}, ff | n.d.keep(), 0
}

// Open is fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	p := n.path()
	if errno := n.d.before("open", p); errno != 0 {
		return nil, 0, errno
	}
	f, err := os.OpenFile(n.d.Back(p), int(flags)&(os.O_RDONLY|os.O_WRONLY|os.O_RDWR), 0)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, 0, fs.ToErrno(err)
	}
	n.d.mu.Lock()
	h := &handle{f: f, d: n.d, id: n.d.number(st.Ino, false), path: p}
	n.d.mu.Unlock()
	if flags&syscall.O_TRUNC != 0 {
		return h, n.d.keep(), h.truncate(0)
	}
	return h, n.d.keep(), 0
}

// Setattr is fs.NodeSetattrer; only a change of the size is ours.
func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	size, ok := in.GetSize()
	if !ok {
		return n.LoopbackNode.Setattr(ctx, nil, in, out)
	}
	h, open := fh.(*handle)
	if !open {
		f, _, errno := n.Open(ctx, syscall.O_RDWR)
		if errno != 0 {
			return errno
		}
		h = f.(*handle)
		defer h.f.Close()
	}
	if errno := h.truncate(int64(size)); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Getattr(ctx, nil, out)
}

// Fsync is fs.NodeFsyncer, of files and folders.
func (n *node) Fsync(ctx context.Context, fh fs.FileHandle, flags uint32) syscall.Errno {
	if h, ok := fh.(*handle); ok {
		return h.flush(flags&dataOnly != 0)
	}
	return n.d.flush("flushdir", n.path(), Event{Kind: FlushDir, Path: n.path()})
}

// OpendirHandle is fs.NodeOpendirHandler: a handle that leaves flushes to Fsync.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (d *Disk) flush(name, path string, e Event) syscall.Errno {
	if errno := d.before(name, path); errno != 0 {
		return errno
	}
	e.Upto = d.o.Log.Next()
	if d.o.Slow > 0 {
		<-time.After(d.o.Slow) // what a program says meanwhile, it says too early
	}
	d.o.Log.Add(e)
	return 0
}

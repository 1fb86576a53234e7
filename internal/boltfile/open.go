package boltfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// DefaultMaxSize is the limit where Options names none. With what bbolt adds, it
// maps 512 MiB, which a 32-bit process can still spare.
const DefaultMaxSize = 384 << 20

// Sizes in bytes.
const (
	pageSize = 4096    // whatever the kernel's is: with a Pi 5's 16 KiB a claim writes four times as much
	growStep = 1 << 20 // the file grows in these steps, which cost a flush each
	minSize  = 1 << 20 // of Options.MaxSize
)

// Options of a file. Name and Version are needed.
type Options struct {
	Name    string // the kind of store, as in "gate": a file of another kind is refused
	Version int    // of what the caller stores, from 1; a file of another version is refused

	// MaxSize is how many bytes the live pages may take, at least 1 MiB; 0 means
	// DefaultMaxSize. At the limit, functions that make the store larger get
	// kv.ErrFull. The file itself may be an eighth and 2 MiB larger.
	MaxSize int64

	// Reserve asks the file system to set aside this many bytes of disk for the
	// file when it is opened, so that others cannot fill the disk under it. 0: none.
	Reserve int64

	// SyncFreelist writes the list of free pages with each commit. Without it the
	// list is rebuilt when the file is opened, by reading all of it, in about a third
	// of the time that Verify takes. It is a page or two less a commit, and very many less after
	// an event was pruned, when the list is long; and a damaged list is one of the
	// ways in which a file cannot be opened.
	SyncFreelist bool

	// Verify checks an existing file before this process maps it; nil: no check.
	// A caller passes VerifyInChild with its own program and arguments.
	Verify func(ctx context.Context, path string) error

	Log *slog.Logger     // nil: silent
	Now func() time.Time // nil: time.Now; for the date of creation only
}

func (o Options) fill() (Options, error) {
	if o.Name == "" || o.Version < 1 {
		return o, fmt.Errorf("open store: name %q and version %d, want a name and at least 1", o.Name, o.Version)
	}
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.MaxSize < minSize {
		return o, fmt.Errorf("open store: limit of %d bytes, want at least %d", o.MaxSize, minSize)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// hard is where bbolt itself stops the file from growing: deletes need some pages
// beyond the limit, and a commit may pass it by what its functions put.
func (o Options) hard() int64 { return o.MaxSize + max(minSize, o.MaxSize/8) + growStep }

func (o Options) bolt() *bbolt.Options {
	return &bbolt.Options{
		Timeout:         lockPatience, // the default waits for ever
		PageSize:        pageSize,
		FreelistType:    bbolt.FreelistArrayType, // gives the lowest free pages: a commit's lie together, a fifth faster than the map's
		NoFreelistSync:  !o.SyncFreelist,
		InitialMmapSize: int(o.hard()) + 1, // no remapping, for which all readers would have to end
		MaxSize:         int(o.hard()),
		Logger:          logger{o.Log},
	}
}

// Open opens the store at path, and makes it if there is no file. It gives a
// *LockedError where another process has it, *DamagedError where the file is for
// SetAside, *KindError and *VersionError where the file is good and the caller is
// wrong.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	o, err := o.fill()
	if err != nil {
		return nil, err
	}
	l, err := lock(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f, err := open(ctx, path, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), l.Close())
	}
	f.lock = l
	return f, nil
}

func open(ctx context.Context, path string, o Options) (*File, error) {
	fresh, err := ensure(path, o)
	if err != nil {
		return nil, err
	}
	if !fresh && o.Verify != nil {
		if err := o.Verify(ctx, path); err != nil {
			return nil, err
		}
	}
	half, err := halfMeta(path)
	if err != nil {
		return nil, err
	}
	db, err := openBolt(path, o.bolt())
	if err != nil {
		return nil, err
	}
	m, err := identify(db, path, o)
	if err == nil {
		err = reserve(path, o.Reserve)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	f := newFile(db, o.MaxSize, m, fresh)
	f.doubtful = half
	return f, nil
}

// ensure makes the file if there is none. What is there must look like a file that
// ensure made: an empty one is no store that bbolt may begin in place.
func ensure(path string, o Options) (fresh bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, create(path, o)
	case err != nil:
		return false, fmt.Errorf("look at file: %w", err)
	case !info.Mode().IsRegular():
		return false, &DamagedError{path, fmt.Sprintf("it is no file (%v)", info.Mode().Type())}
	case info.Size() < 2*pageSize:
		return false, &DamagedError{path, fmt.Sprintf("it has %d bytes", info.Size())}
	}
	return false, nil
}

// create makes the file under another name and renames it when all of it is on
// disk: bbolt's own beginning is not safe against a power cut, and it never syncs
// the directory.
func create(path string, o Options) error {
	offside := path + ".new"
	if err := os.Remove(offside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove half-made file: %w", err)
	}
	db, err := openBolt(offside, o.bolt())
	if err != nil {
		return err
	}
	err = db.Update(meta{o.Name, o.Version, o.Now()}.write)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("begin file: %w", err)
	}
	if err := syncPath(offside); err != nil {
		return err
	}
	if err := os.Rename(offside, path); err != nil {
		return fmt.Errorf("put file in place: %w", err)
	}
	return syncPath(filepath.Dir(path))
}

// syncPath flushes a file or directory.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("flush %s: %w", path, err)
	}
	return nil
}

// openBolt is bbolt.Open with its panics as damage. After one this process still
// has bbolt's lock on that file, not on one that takes its place.
func openBolt(path string, o *bbolt.Options) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, &DamagedError{path, fmt.Sprint(r)}
		}
	}()
	db, err = bbolt.Open(path, 0o600, o)
	switch {
	case err == nil:
		db.AllocSize = growStep
		return db, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, lockedBy(path, path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, &DamagedError{path, err.Error()}
	}
	return nil, fmt.Errorf("open bbolt file: %w", err)
}

// identify reads the description and holds it against the options.
func identify(db *bbolt.DB, path string, o Options) (m meta, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &DamagedError{path, fmt.Sprint(r)}
		}
	}()
	tx, err := db.Begin(false)
	if err != nil {
		return meta{}, fmt.Errorf("read description: %w", err)
	}
	defer func() { err = errors.Join(err, abandon(tx)) }()
	m, ours, err := readMeta(tx)
	switch {
	case err != nil:
		return m, &DamagedError{path, err.Error()}
	case !ours || m.kind != o.Name:
		return m, &KindError{path, m.kind, o.Name}
	case m.version != o.Version:
		return m, &VersionError{path, m.version, o.Version}
	}
	return m, nil
}

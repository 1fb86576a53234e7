package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Server is a PostgreSQL server of its own data folder.
type Server struct {
	dir      string   // holds data, sock and log
	bin      string   // Debian's folder of the programs
	settings []string // each NAME=VALUE
	as       *syscall.Credential

	run *running // nil while it is down
}

// running is one life of the server's process.
type running struct {
	process *os.Process
	ended   chan struct{} // closed once err is set
	err     error
}

// startFor is how long a server may take until it accepts connections: as long as
// the recovery after a kill may take on a busy machine.
const startFor = 2 * time.Minute

// Start makes a database cluster and starts its server. Each setting is NAME=VALUE;
// what is not set is PostgreSQL's default, so that commits reach the disk. Close
// ends it.
func Start(settings ...string) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg") // short: a socket's path has 107 bytes at most
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	s := &Server{dir: dir, bin: bin, settings: settings, as: as}
	if err := s.init(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// programs finds the newest of Debian's versions.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", errors.Join(errors.New("start PostgreSQL: not installed; scripts/deps postgresql installs it"), err)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// unprivileged gives whom the server runs as: PostgreSQL refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("start PostgreSQL: as root it needs a user postgres or nobody to run as")
}

func (s *Server) init() error {
	for _, d := range []string{"", "data", "sock"} {
		path := filepath.Join(s.dir, d)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("make database cluster: %w", err)
		}
		if s.as != nil {
			if err := os.Chown(path, int(s.as.Uid), int(s.as.Gid)); err != nil {
				return fmt.Errorf("make database cluster: %w", err)
			}
		}
	}
	cmd := s.command("initdb", "-D", s.path("data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make database cluster: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// Dir is the folder of the server, which its user can write to.
func (s *Server) Dir() string { return s.dir }

// OnDisk reports whether what the server writes reaches a disk, as figures need it.
func (s *Server) OnDisk() bool {
	var fs unix.Statfs_t
	return unix.Statfs(s.dir, &fs) == nil && fs.Type != unix.TMPFS_MAGIC && fs.Type != unix.RAMFS_MAGIC
}

// Own gives a file or folder to the server's user.
func (s *Server) Own(path string) error {
	if s.as == nil {
		return nil
	}
	return os.Chown(path, int(s.as.Uid), int(s.as.Gid))
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// Start starts a server that is down, and returns when it accepts connections.
func (s *Server) Start() error {
	if s.run != nil {
		return errors.New("start PostgreSQL: it runs already")
	}
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer log.Close()
	args := []string{"-D", s.path("data"), "-k", s.path("sock")}
	for _, set := range append([]string{"listen_addresses="}, s.settings...) {
		args = append(args, "-c", set)
	}
	cmd := s.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	r := &running{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the server dies with the thread that made it, and so with this process
		defer close(r.ended)
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err == nil {
			r.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.run = r
	return s.ready()
}

// ready waits until the server takes connections.
func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if exec.CommandContext(ctx, filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.path("sock"), "-U", "postgres", "-d", "postgres").Run() == nil {
			return nil
		}
		select {
		case <-s.run.ended:
			s.run = nil
			return fmt.Errorf("start PostgreSQL: it ended\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("start PostgreSQL: it takes no connections\n%s", s.Log())
		case <-tick.C:
		}
	}
}

// Log is the last of what the server has said.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.path("log"))
	if err != nil {
		return err.Error()
	}
	const most = 4096
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return string(bytes.TrimSpace(b))
}

// URL names a database of this server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s", database, strings.ReplaceAll(s.path("sock"), "/", "%2F"))
}

// Stop ends the server: connections are cut off, what is committed is on disk.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Kill ends the server's first process as a crash does, with its children, which
// see that it is gone. What was not committed is lost.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// end sends a signal and waits until no process of the server is left.
func (s *Server) end(sig syscall.Signal) error {
	r := s.run
	if r == nil {
		return nil
	}
	if err := r.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end PostgreSQL: %w", err)
	}
	<-r.ended
	s.run = nil
	return s.orphans()
}

// orphans waits for the children of a server that was killed: a new one cannot
// start while they hold the shared memory.
func (s *Server) orphans() error {
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := processesIn(s.path("data"))
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("end PostgreSQL: %d processes are left", left)
		case <-tick.C:
		}
	}
}

// processesIn counts the processes that work in a folder.
func processesIn(dir string) (n int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && at == dir {
			n++
		}
	}
	return n, err
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	return errors.Join(s.end(syscall.SIGQUIT), os.RemoveAll(s.dir))
}

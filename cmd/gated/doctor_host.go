package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"admitone/hardware/camera"
	"admitone/hardware/turnstile"
	"admitone/internal/config"
)

// service is the user that the daemon runs as.
const service = "gated"

// host is what the doctor looks at. A test gives it a root of its own and answers
// where a kernel would.
type host struct {
	root   string // before /proc, /sys, /dev and /etc; "" on a box
	stat   func(path string) (fs.FileInfo, owner, error)
	statfs func(path string) (free int64, err error)
	synced func() (bool, time.Duration)
	now    func() time.Time
	dial   func(ctx context.Context, address string) (net.Conn, error)
	chips  func() ([]turnstile.Chip, error)

	probe   func(camera.V4L2Options) (camera.Offer, error)
	measure func(context.Context, config.Camera) (rate float64, err error) // pictures a second
}

// owner is whose a file is.
type owner struct{ uid, gid int }

func thisHost() host {
	return host{
		stat: func(path string) (fs.FileInfo, owner, error) {
			info, err := os.Stat(path)
			if err != nil {
				return nil, owner{}, err
			}
			o := owner{uid: -1, gid: -1}
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				o = owner{int(st.Uid), int(st.Gid)}
			}
			return info, o, nil
		},
		statfs: func(path string) (int64, error) {
			var st unix.Statfs_t
			if err := unix.Statfs(path, &st); err != nil {
				return 0, err
			}
			return int64(st.Bavail) * int64(st.Bsize), nil
		},
		synced: (&systemClock{}).synced,
		now:    time.Now,
		dial: func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
		chips:   turnstile.Chips,
		probe:   camera.Probe,
		measure: measure,
	}
}

// at gives where a path of the box is for this process.
func (h host) at(path string) string { return filepath.Join(h.root, path) }

// text reads a small file of the kernel's; "" where there is none.
func (h host) text(path string) string {
	b, err := os.ReadFile(h.at(path))
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\x00\n ")
}

// there tells whether a path exists.
func (h host) there(path string) bool {
	_, err := os.Stat(h.at(path))
	return err == nil
}

// account is who the daemon is, and its groups by /etc/group.
type account struct {
	name   string
	uid    int
	groups []int
}

// account gives the service's user; where there is none, who runs this command.
func (h host) account() account {
	if a, ok := h.named(service); ok {
		return a
	}
	a := account{name: "this user", uid: os.Getuid(), groups: []int{os.Getgid()}}
	if u, err := user.Current(); err == nil {
		a.name = u.Username
	}
	if more, err := os.Getgroups(); err == nil {
		a.groups = append(a.groups, more...)
	}
	return a
}

func (h host) named(name string) (account, bool) {
	for _, f := range h.lines("/etc/passwd", 4) {
		if f[0] != name {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil {
			return account{}, false
		}
		a := account{name: name, uid: uid, groups: []int{gid}}
		for _, g := range h.lines("/etc/group", 4) {
			if gid, err := strconv.Atoi(g[2]); err == nil && slices.Contains(strings.Split(g[3], ","), name) {
				a.groups = append(a.groups, gid)
			}
		}
		return a, true
	}
	return account{}, false
}

// lines gives the fields of a file of /etc that are divided by colons.
func (h host) lines(path string, least int) (out [][]string) {
	for line := range strings.Lines(h.text(path)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= least {
			out = append(out, f)
		}
	}
	return out
}

// group gives the name of a group.
func (h host) group(gid int) string {
	for _, g := range h.lines("/etc/group", 3) {
		if g[2] == strconv.Itoa(gid) {
			return g[0]
		}
	}
	return strconv.Itoa(gid)
}

// access tells whether an account may read and write a file, by its mode.
func (a account) access(mode fs.FileMode, o owner) bool {
	const rw = 6
	switch perm := mode.Perm(); {
	case a.uid == 0:
		return true
	case a.uid == o.uid:
		return perm>>6&rw == rw
	case slices.Contains(a.groups, o.gid):
		return perm>>3&rw == rw
	default:
		return perm&rw == rw
	}
}

// device looks at a device that the daemon opens. It gives false, and says what to
// do, where it cannot.
func (x *examination) device(about, path, absent string) bool {
	info, o, err := x.stat(x.at(path))
	if err != nil {
		x.bad(about, absent, "%s is not there", path)
		return false
	}
	a := x.account()
	if a.access(info.Mode(), o) {
		return true
	}
	do := fmt.Sprintf("usermod -aG %s %s, and restart gated", x.group(o.gid), a.name)
	if o.gid == 0 || info.Mode().Perm()>>3&6 != 6 {
		do = "install the udev rules 99-admitone.rules, and reconnect it or restart the box"
	}
	x.bad(about, do, "%s may not open %s (mode %04o, group %s)", a.name, path, info.Mode().Perm(), x.group(o.gid))
	return false
}

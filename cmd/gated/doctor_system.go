package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// enrolment looks at who can read the device's key.
func (x *examination) enrolment() {
	file := x.c.Enrolment
	if file == "" {
		return // the configuration's problem
	}
	info, o, err := x.stat(file)
	if err != nil {
		return // likewise
	}
	a := x.account()
	switch {
	case a.uid != 0 && o.uid != a.uid:
		x.bad("enrolment", fmt.Sprintf("chown %s: %s", a.name, file), "%s belongs to another user than %s, who must read it", file, a.name)
	case info.Mode().Perm()&0o077 != 0:
		x.bad("enrolment", "chmod 600 "+file, "mode %04o lets others read the device's key", info.Mode().Perm())
	default:
		x.ok("enrolment", "%s, for %s", file, x.c.Device.Place)
	}
	if issued := x.c.Device.Issued; x.now().Before(issued) {
		x.bad("clock", "set the clock, or wait for NTP: `timedatectl`", "it stands at %s, before this box was enrolled (%s)",
			x.now().UTC().Format(time.DateTime), issued.UTC().Format(time.DateTime))
	}
}

// clock looks at what tells the time, now and after a power cut.
func (x *examination) clock() {
	if ok, within := x.synced(); ok {
		x.ok("clock", "synchronised, to %v", within)
	} else {
		x.warn("clock", "let chrony or systemd-timesyncd reach a server; a ledger that answers does as well",
			"not synchronised: claims are marked untrusted, time windows go by untrusted_clock")
	}
	rtcs, err := filepath.Glob(x.at("/sys/class/rtc/rtc*"))
	switch {
	case err == nil && len(rtcs) > 0:
		x.ok("clock chip", "%s, %s", filepath.Base(rtcs[0]), x.text("/sys/class/rtc/"+filepath.Base(rtcs[0])+"/name"))
	case x.there("/etc/fake-hwclock.data") || x.there("/var/lib/systemd/timesync/clock"):
		x.warn("clock chip", "fit a clock chip (dtoverlay=i2c-rtc,ds3231), or the battery of a Pi 5",
			"none: after a power cut the clock goes on from where a file says that it was")
	default:
		x.warn("clock chip", "fit a clock chip (dtoverlay=i2c-rtc,ds3231), or install fake-hwclock",
			"none, and nothing remembers the time: after a power cut the clock stands years ago")
	}
}

// mount is a file system as /proc/self/mountinfo has it (proc(5)).
type mount struct {
	dev, at, kind, source string
	options               []string // of the mount and of the file system
}

func (m mount) has(option string) bool { return slices.Contains(m.options, option) }

// mountOf gives the mount that a path is on, or would be once it is made.
func (h host) mountOf(path string) (found mount, ok bool) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(h.text("/proc/self/mountinfo")) {
		before, after, cut := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !cut || len(f) < 6 || len(g) < 3 {
			continue
		}
		m := mount{dev: f[2], at: unescape.Replace(f[4]), kind: g[0], source: unescape.Replace(g[1]),
			options: append(strings.Split(f[5], ","), strings.Split(g[2], ",")...)}
		below := path == m.at || strings.HasPrefix(path, strings.TrimSuffix(m.at, "/")+"/")
		if below && len(m.at) >= len(found.at) { // a later mount hides an earlier one
			found, ok = m, true
		}
	}
	return found, ok
}

// lowSpace is less than what a gate needs on a day: its records, and bbolt's
// growing by 16 MB at a time.
const lowSpace = 64 << 20

// disk looks at where the store is.
func (x *examination) disk() {
	dir := x.c.DataDir
	if dir == "" {
		return
	}
	x.dataDir(dir)
	m, ok := x.mountOf(dir)
	if !ok {
		x.warn("data disk", "", "/proc/self/mountinfo does not tell what %s is on", dir)
		return
	}
	x.fileSystem(dir, m)
	if m.kind == "ext4" {
		x.fastCommit(m)
	}
}

// dataDir looks at the directory and the space in it.
func (x *examination) dataDir(dir string) {
	a := x.account()
	info, o, err := x.stat(x.at(dir))
	existing := dir
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.warn("data_dir", "", "%s is not there yet: the first start makes it", dir)
		for existing = filepath.Dir(dir); existing != "/" && existing != "." && !x.there(existing); existing = filepath.Dir(existing) {
		}
	case err != nil:
		x.bad("data_dir", "", "%v", err)
		return
	case !info.IsDir():
		x.bad("data_dir", "name a folder", "%s is no folder", dir)
		return
	case !a.access(info.Mode(), o):
		x.bad("data_dir", fmt.Sprintf("chown -R %s: %s", a.name, dir), "%s may not write in %s (mode %04o)", a.name, dir, info.Mode().Perm())
	default:
		x.ok("data_dir", "%s, of %s", dir, a.name)
	}
	free, err := x.statfs(x.at(existing))
	switch {
	case err != nil:
		x.warn("disk space", "", "%v", err)
	case free < lowSpace:
		x.bad("disk space", "make room: a gate whose disk is full refuses", "%s are free", megabytes(free))
	case free < int64(x.c.MaxSize):
		x.warn("disk space", "make room, or set max_size lower", "%s are free, max_size allows the store %s", megabytes(free), megabytes(int64(x.c.MaxSize)))
	default:
		x.ok("disk space", "%s are free", megabytes(free))
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1e6) }

// fileSystem looks at how the disk is mounted.
func (x *examination) fileSystem(dir string, m mount) {
	volatile := []string{"tmpfs", "ramfs", "overlay"}
	weak := []string{"vfat", "exfat", "msdos"}
	barrier := m.has("nobarrier") || m.has("barrier=0")
	switch {
	case slices.Contains(volatile, m.kind):
		x.bad("data disk", "put data_dir on a writable ext4 partition", "%s is on %s: a power cut takes every claim", dir, m.kind)
	case slices.Contains(weak, m.kind):
		x.bad("data disk", "put data_dir on an ext4 partition", "%s is on %s, which a power cut can damage", dir, m.kind)
	case m.has("ro"):
		x.bad("data disk", "mount -o remount,rw "+m.at+"; if it became read-only by itself, the card is failing: replace it", "%s is mounted read-only", m.at)
	case barrier:
		x.bad("data disk", "mount it without nobarrier", "%s is mounted without barriers: what was claimed may not survive a power cut", m.at)
	case !m.has("noatime"):
		x.warn("data disk", "add noatime to its options in /etc/fstab", "%s (%s) is written to for what is only read", m.at, m.kind)
	default:
		x.ok("data disk", "%s, %s", m.at, m.kind)
	}
}

// fastCommit looks for the feature that loses a file's growth on kernels before
// 5.10.94, 5.15.27 and 5.17 (bbolt's README, known issues). It stands in the
// compatible features of the superblock (0x0400), which only root may read.
func (x *examination) fastCommit(m mount) {
	on, err := fastCommit(x.at(m.source))
	release := x.text("/proc/sys/kernel/osrelease")
	switch {
	case err != nil && os.Getuid() != 0:
		x.warn("fast_commit", "run this as root to know", "not looked at: %s is for root to read", m.source)
	case err != nil:
		x.warn("fast_commit", "", "not looked at: %v", err)
	case on && losesFastCommits(release):
		x.bad("fast_commit", "tune2fs -O ^fast_commit "+m.source+", or a newer kernel", "%s has it, and kernel %s loses what a file grew by", m.source, release)
	case on:
		x.ok("fast_commit", "on; kernel %s does it right", release)
	default:
		x.ok("fast_commit", "off")
	}
}

// fastCommit reads the superblock of an ext4 file system: it begins at byte 1024,
// with its magic at 0x38 and its compatible features at 0x5c.
func fastCommit(device string) (bool, error) {
	f, err := os.Open(device)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, 0x60)
	if _, err := f.ReadAt(b, 1024); err != nil {
		return false, fmt.Errorf("read superblock of %s: %w", device, err)
	}
	if b[0x38] != 0x53 || b[0x39] != 0xef {
		return false, fmt.Errorf("%s is not ext4", device)
	}
	return b[0x5d]&0x04 != 0, nil
}

// losesFastCommits tells whether a kernel is one of those; one that cannot be
// read is.
func losesFastCommits(release string) bool {
	var v [3]int
	for i, s := range strings.SplitN(release, ".", 3) {
		digits := strings.IndexFunc(s+"-", func(c rune) bool { return c < '0' || c > '9' })
		n, err := strconv.Atoi(s[:digits])
		if err != nil {
			return true
		}
		v[i] = n
	}
	switch {
	case v[0] != 5:
		return v[0] == 0
	case v[1] == 10:
		return v[2] < 94
	case v[1] == 15:
		return v[2] < 27
	}
	return v[1] > 10 && v[1] < 17
}

// runDir looks at where the marks of what fired are.
func (x *examination) runDir() {
	if x.c.RunDir == "" {
		return
	}
	m, ok := x.mountOf(x.c.RunDir)
	switch {
	case !ok:
		x.warn("run_dir", "", "/proc/self/mountinfo does not tell what %s is on", x.c.RunDir)
	case m.kind != "tmpfs":
		x.bad("run_dir", "name a folder on tmpfs, as in \"/run/gated\"", "%s is on %s: marks of a boot would outlive it", x.c.RunDir, m.kind)
	default:
		x.ok("run_dir", "%s, on tmpfs", x.c.RunDir)
	}
}

// watchdog looks at what resets a box whose kernel or service manager hangs.
func (x *examination) watchdog() {
	const dev = "/sys/class/watchdog/watchdog0"
	switch {
	case !x.there(dev):
		x.warn("watchdog", "dtparam=watchdog=on in config.txt, where the board has one", "there is none: a kernel that hangs stays so")
	case x.text(dev+"/state") != "active":
		x.warn("watchdog", "RuntimeWatchdogSec=14 in /etc/systemd/system.conf, and systemctl daemon-reexec", "%s is there, and nobody feeds it", x.text(dev+"/identity"))
	default:
		x.ok("watchdog", "%s, %s s", x.text(dev+"/identity"), x.text(dev+"/timeout"))
	}
}

// power looks at what a Raspberry Pi's firmware saw of its supply: bit 0 is now,
// bit 16 is since the start (vcgencmd get_throttled).
func (x *examination) power() {
	s := x.text("/sys/devices/platform/soc/soc:firmware/get_throttled")
	bits, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
	switch {
	case s == "" || err != nil: // another board
	case bits&1 != 0:
		x.bad("power supply", "use the board's own supply and a short cable", "the voltage is too low now: cards are damaged this way")
	case bits&(1<<16) != 0:
		x.warn("power supply", "use the board's own supply and a short cable", "the voltage was too low since the start")
	default:
		x.ok("power supply", "never too low since the start")
	}
}

//go:build linux

// Guest is the first and only program of an emulated board: no shell, no other
// tools. As process 1 it mounts, loads the kernel modules that /modules lists
// ("PATH PARAMETERS" a line, in order) and collects what others leave behind. Its
// child does what the host asks for over the console. As "init stream FILE N" it is
// a camera's program.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if os.Getpid() == 1 {
		boot()
	}
	fmt.Fprintln(os.Stderr, "guest:", work(os.Args[1:]))
	os.Exit(1)
}

// work never ends but by an error.
func work(args []string) error {
	if len(args) != 3 || args[0] != "stream" {
		return serve(os.Stdin, os.Stdout)
	}
	often, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	return stream(args[1], often, os.Stdout)
}

// boot never returns: the kernel panics without a process 1.
func boot() {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}} {
		must("mount "+m[1], os.MkdirAll(m[1], 0o755))
		must("mount "+m[1], unix.Mount(m[0], m[1], m[0], 0, ""))
	}
	must("load modules", load("/modules"))
	// The console carries the replies: what the kernel has to say stays in its log,
	// a panic excepted.
	must("quiet the console", os.WriteFile("/proc/sys/kernel/printk", []byte("1"), 0))
	must("open console", raw(0))
	child, err := os.StartProcess("/init", []string{"/init"}, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	must("start", err)
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid == child.Pid {
			off()
		}
	}
}

func must(what string, err error) {
	if err == nil {
		return
	}
	fmt.Printf("guest: %s: %v\n", what, err)
	off()
}

// off ends the machine; where the board cannot, it stands still.
func off() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	for {
		time.Sleep(time.Hour)
	}
}

func load(list string) error {
	f, err := os.Open(list)
	if err != nil {
		return err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		path, params, _ := strings.Cut(s.Text(), " ")
		m, err := os.Open(path)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(m.Fd()), params, 0)
		m.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// raw keeps the terminal from echoing and from changing what passes.
func raw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag, t.Oflag = 0, 0
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

package hil

import (
	"fmt"
	"path/filepath"
	"time"
)

// Board is a machine that QEMU emulates, and where its GPIO block is.
type Board struct {
	Name    string
	Arch    string // as Debian calls it
	Package string // the kernel's
	GoArch  string
	Env     []string // of the Go build, besides

	Program    string   // QEMU's
	Args       []string // the machine
	DeviceTree string   // below the kernel's device trees; "": QEMU makes one
	Cmdline    string

	Chip string // the label of the GPIO chip
	gpio string // QEMU's name of the block
}

// Virt is QEMU's arm64 machine without a model in the world: a PL061 GPIO block of
// eight lines, which makes interrupts. Its lines are pulled down.
func Virt() Board {
	return Board{
		Name: "virt", Arch: "arm64", Package: "linux-image-arm64", GoArch: "arm64",
		Program: "qemu-system-aarch64",
		Args:    []string{"-M", "virt,gic-version=2", "-cpu", "cortex-a53", "-m", "512", "-smp", "2", "-accel", "tcg,thread=multi"},
		Cmdline: "console=ttyAMA0",
		Chip:    "9030000.pl061", gpio: kindPL061,
	}
}

// Virt32 is the same with a 32-bit processor and kernel.
func Virt32() Board {
	b := Virt()
	b.Name, b.Arch, b.Package, b.GoArch, b.Env = "virt32", "armhf", "linux-image-armmp", "arm", []string{"GOARM=7"}
	b.Program = "qemu-system-arm"
	b.Args = []string{"-M", "virt,highmem=off", "-cpu", "cortex-a15", "-m", "512", "-smp", "2", "-accel", "tcg,thread=multi"}
	return b
}

// Pi3 is a Raspberry Pi 3B. Its GPIO block has 54 lines and, as emulated, no
// interrupts. The kernel is Debian's: it has no /dev/gpiomem, and lets nobody write
// the registers that a driver of its own has, unless it is told to.
func Pi3() Board {
	return Board{
		Name: "raspi3b", Arch: "arm64", Package: "linux-image-arm64", GoArch: "arm64",
		Program: "qemu-system-aarch64",
		// One thread for its four processors: until the kernel starts them, three wait in
		// a loop, and would take as much of the host each as the one that works.
		Args:       []string{"-M", "raspi3b", "-serial", "null", "-accel", "tcg,thread=single"},
		DeviceTree: "broadcom/bcm2837-rpi-3-b.dtb",
		Cmdline:    "console=ttyS1,115200 iomem=relaxed",
		Chip:       "pinctrl-bcm2835", gpio: kindBCM,
	}
}

// argv is QEMU's command line. The console is its standard input and output; the
// other two connections are given as files 3 and 4. It begins with the processors
// standing still, so that the test sees the lines from the first moment.
func (b Board) argv(k Kernel, initrd string) []string {
	argv := append([]string{b.Program}, b.Args...)
	argv = append(argv, "-nodefaults", "-display", "none", "-no-reboot", "-S",
		"-kernel", k.Image(), "-initrd", initrd, "-append", b.Cmdline+" quiet panic=-1",
		"-serial", "stdio",
		"-chardev", "socket,id=qtest,fd=3", "-qtest", "chardev:qtest", "-qtest-log", "none",
		"-chardev", "socket,id=mon,fd=4", "-mon", "chardev=mon,mode=readline")
	if b.DeviceTree != "" {
		argv = append(argv, "-dtb", k.DeviceTree(b.DeviceTree))
	}
	return argv
}

// The GPIO blocks, as QEMU names them.
const (
	kindPL061 = "pl061"
	kindBCM   = "bcm2835_gpio"
)

// bootLimit is how long a board may take to user space on a busy machine.
const bootLimit = 3 * time.Minute

// workFile gives the path of a board's file in the work directory.
func (b Board) workFile(dir, name string) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%s", b.Name, name))
}

package main

import (
	"maps"
	"slices"
	"strings"

	"admitone/internal/config"
)

// soc is the maker's name of a Raspberry Pi's chip, as in "bcm2711", by the device
// tree's list of what the board is compatible with; "" for another board.
func (h host) soc() string {
	for c := range strings.SplitSeq(h.text("/proc/device-tree/compatible"), "\x00") {
		if name, ok := strings.CutPrefix(c, "brcm,"); ok && (strings.HasPrefix(name, "bcm27") || strings.HasPrefix(name, "bcm28")) {
			return name
		}
	}
	return ""
}

// registers tells whether a board has the registers that driver rpio knows: a
// Raspberry Pi 0 to 4.
func registers(soc string) bool {
	return slices.Contains([]string{"bcm2708", "bcm2709", "bcm2710", "bcm2711", "bcm2835", "bcm2836", "bcm2837"}, soc)
}

// chipOf is the label of the GPIO chip behind a Raspberry Pi's header, "" where
// none is known.
func chipOf(soc string) string {
	switch {
	case soc == "bcm2711":
		return "pinctrl-bcm2711"
	case soc == "bcm2712":
		return "pinctrl-rp1"
	case registers(soc):
		return "pinctrl-bcm2835"
	}
	return ""
}

func (x *examination) board() {
	model := x.text("/proc/device-tree/model")
	switch {
	case model == "":
		x.ok("board", "no device tree: not a Raspberry Pi")
	case x.soc() == "":
		x.ok("board", "%s", model)
	default:
		x.ok("board", "%s (%s)", model, x.soc())
	}
}

// turnstile looks at one turnstile's driver on this board.
func (x *examination) turnstile(about string, t config.Turnstile) {
	soc := x.soc()
	switch t.Driver {
	case config.DriverSim:
		x.warn(about, "set driver to \"gpiochip\", or to \"rpio\" on a Raspberry Pi up to 4, once it is wired", "simulated: no line of this board is touched")
	case config.DriverRPIO:
		if !registers(soc) {
			x.bad(about, "set driver to \"gpiochip\"", "driver rpio is for Raspberry Pi 0 to 4, and this is another board")
			return
		}
		x.memory(about, soc, t.AllowDevMem)
		x.warn(about+", after a crash", "wire a pulse limiter (hardware/README.md), or use driver \"gpiochip\"",
			"registers keep their level when a process is gone: the keeper and ExecStopPost make the relay idle, the kernel does not")
	case config.DriverGPIOChip:
		x.gpiochip(about, t.Chip, t.Pins)
	}
	if t.Driver != config.DriverSim && chipOf(soc) != "" {
		x.bootLevel(about, t)
	}
}

// memory looks at how driver rpio reaches the registers: by the whole memory, if
// it may, and by /dev/gpiomem if it may not.
func (x *examination) memory(about, soc string, allowed bool) {
	const all = "/dev/mem"
	info, o, err := x.stat(x.at(all))
	switch a := x.account(); {
	case err == nil && a.access(info.Mode(), o) && allowed:
		x.ok(about, "driver rpio on %s, by %s, the whole memory", soc, all)
	case err == nil && a.access(info.Mode(), o):
		x.bad(about, "run it as a user without that right who is in group gpio, or set allow_dev_mem = true", "%s may open %s, the whole memory, and driver rpio would", a.name, all)
	case x.device(about, "/dev/gpiomem", "use a kernel that has it, as Raspberry Pi's have, or driver \"gpiochip\""):
		x.ok(about, "driver rpio on %s, by /dev/gpiomem", soc)
	}
}

// bootLevel looks at what a Raspberry Pi's pin does between power-on and the
// daemon's start: 0 to 8 are pulled up, 9 to 27 down (BCM2835 ARM Peripherals, page
// 102), and 14 is driven high as the serial console's output.
func (x *examination) bootLevel(about string, t config.Turnstile) {
	pin, wired := t.Pins["relay"]
	if !wired {
		return
	}
	high := pin <= 8 || pin == 14
	if high == slices.Contains(t.ActiveLow, "relay") {
		return
	}
	level := "low"
	if high {
		level = "high"
	}
	x.warn(about+", at boot", "wire the relay to a pin with the other pull, or a 4.7 kOhm resistor to its idle level, and see it in the boot test (hardware/README.md)",
		"the relay is on pin %d, which is %s from power-on, and %s is active: it opens at every boot", pin, level, level)
}

// gpiochip looks at the chip with a label, and at the lines on it.
func (x *examination) gpiochip(about, label string, pins map[string]int) {
	chips, err := x.chips()
	var labels []string
	for _, c := range chips {
		if c.Label != label {
			labels = append(labels, c.Label)
			continue
		}
		fine := x.device(about, "/dev/"+c.Name, "")
		for _, name := range slices.Sorted(maps.Keys(pins)) {
			pin := pins[name]
			who, held := c.Held[pin]
			switch {
			case pin >= c.Lines:
				fine = false
				x.bad(about, "look at the pin table in hardware/README.md", "%s is on line %d, and %s has 0 to %d", name, pin, label, c.Lines-1)
			case held && !strings.HasPrefix(who, service):
				fine = false
				x.bad(about, "end what holds it (often an overlay in config.txt), or wire another pin", "%s is on line %d, which %q holds", name, pin, who)
			}
		}
		if fine {
			x.ok(about, "driver gpiochip, %s (%s)", label, c.Name)
		}
		x.persistence(about)
		return
	}
	switch {
	case err != nil && len(labels) == 0:
		x.bad(about, "run this as root, or join group gpio", "%v", err)
	case len(labels) == 0:
		x.bad(about, "use a kernel with the GPIO character device (CONFIG_GPIO_CDEV)", "this kernel has no GPIO chip")
	default:
		slices.Sort(labels)
		x.bad(about, "set chip to one of them: "+strings.Join(slices.Compact(labels), ", "), "there is no GPIO chip %q", label)
	}
}

// persistence looks at what Raspberry Pi's kernels do with a line whose holder is
// gone: they keep an output's level, unless told to be strict (white paper "A
// history of GPIO usage on Raspberry Pi", raspberrypi/linux 6117 and 6150).
func (x *examination) persistence(about string) {
	const parameter = "/sys/module/pinctrl_bcm2835/parameters/persist_gpio_outputs"
	about += ", after a crash"
	switch p := x.text(parameter); {
	case p == "N" || p == "0":
		x.ok(about, "the kernel lets go of a line whose holder is gone (strict_gpiod)")
	case p != "":
		x.warn(about, "add dtparam=strict_gpiod to config.txt and restart the box",
			"the kernel keeps the level of a line whose holder is gone; the keeper and ExecStopPost make the relay idle until then")
	default: // a PL061 keeps it, and says nothing
		x.warn(about, "see in a bench test what the line does after `kill -9`", "this kernel does not say what it does with a line whose holder is gone; the keeper and ExecStopPost make the relay idle")
	}
}

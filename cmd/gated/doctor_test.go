package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/hardware/turnstile"
	"admitone/internal/config"
	"admitone/internal/wire"
)

// patient is a box in a folder: a Raspberry Pi 4 on which everything is well.
type patient struct {
	t      *testing.T
	host   host
	config string
	chips  []turnstile.Chip
	free   int64
	synced bool
	owners map[string]owner // of files below the root; else the service's
}

const (
	gatedUID, gatedGID, gpioGID, dialoutGID = 990, 991, 997, 20

	mountinfo = `23 22 179:3 / /var/lib rw,noatime shared:1 - ext4 /dev/mmcblk0p3 rw
22 1 179:2 / / ro,noatime - ext4 /dev/mmcblk0p2 ro
24 22 0:5 / /run rw,nosuid - tmpfs tmpfs rw
25 22 179:1 / /boot/firmware rw - vfat /dev/mmcblk0p1 rw
`
	compatible4 = "raspberrypi,4-model-b\x00brcm,bcm2711\x00"
	compatible5 = "raspberrypi,5-model-b\x00brcm,bcm2712\x00"
)

func newPatient(t *testing.T) *patient {
	p := &patient{t: t, free: 8e9, synced: true, owners: map[string]owner{},
		chips: []turnstile.Chip{
			{Name: "gpiochip1", Label: "raspberrypi-exp-gpio", Lines: 8},
			{Name: "gpiochip0", Label: "pinctrl-bcm2711", Lines: 58, Held: map[int]string{17: "gated relay", 4: "w1"}},
		}}
	root := t.TempDir()
	p.host = host{
		root: root,
		stat: func(path string) (fs.FileInfo, owner, error) {
			info, err := os.Stat(path)
			o, known := p.owners[strings.TrimPrefix(path, root)]
			if !known {
				o = owner{gatedUID, gatedGID}
			}
			return info, o, err
		},
		statfs: func(string) (int64, error) { return p.free, nil },
		synced: func() (bool, time.Duration) { return p.synced, 12 * time.Millisecond },
		now:    time.Now,
		dial: func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("connection refused")
		},
		chips: func() ([]turnstile.Chip, error) { return p.chips, nil },
	}
	for path, text := range map[string]string{
		"/proc/device-tree/model":                                     "Raspberry Pi 4 Model B Rev 1.4\x00",
		"/proc/device-tree/compatible":                                compatible4,
		"/proc/self/mountinfo":                                        mountinfo,
		"/proc/sys/kernel/osrelease":                                  "6.6.51+rpt-rpi-v8\n",
		"/proc/cmdline":                                               "coherent_pool=1M console=tty1 root=/dev/mmcblk0p2\n",
		"/etc/passwd":                                                 "root:x:0:0:root:/root:/bin/sh\ngated:x:990:991::/var/lib/gated:/usr/sbin/nologin\n",
		"/etc/group":                                                  "root:x:0:\ndialout:x:20:gated\ngpio:x:997:pi,gated\ngated:x:991:\ninput:x:105:\n",
		"/sys/class/rtc/rtc0/name":                                    "rtc-ds1307 1-0068\n",
		"/sys/class/watchdog/watchdog0/state":                         "active\n",
		"/sys/class/watchdog/watchdog0/identity":                      "Broadcom BCM2835 Watchdog timer\n",
		"/sys/class/watchdog/watchdog0/timeout":                       "15\n",
		"/sys/devices/platform/soc/soc:firmware/get_throttled":        "0\n",
		"/sys/module/pinctrl_bcm2835/parameters/persist_gpio_outputs": "N\n",
		"/var/lib/gated/gate.db":                                      "",
		"/dev/mmcblk0p3":                                              superblock(false),
		"/dev/gpiochip0":                                              "",
		"/dev/gpiomem":                                                "",
		"/dev/serial/by-id/usb-Newland_NLS-FM430-if00":                "",
		"/run/empty":                                                  "",
	} {
		p.put(path, text)
	}
	p.owns("/dev/gpiochip0", 0, gpioGID, 0o660)
	p.owns("/dev/gpiomem", 0, gpioGID, 0o660)
	p.owns("/dev/serial/by-id/usb-Newland_NLS-FM430-if00", 0, dialoutGID, 0o660)
	p.enrol(config.Enrolment{Brokers: []string{"nats://127.0.0.1:4222"}})
	return p
}

// superblock is the first two kilobytes of an ext4 file system.
func superblock(fastCommit bool) string {
	b := make([]byte, 2048)
	b[1024+0x38], b[1024+0x39] = 0x53, 0xef
	b[1024+0x5c] = 0x3c
	b[1024+0x5d] = 0x02
	if fastCommit {
		b[1024+0x5d] |= 0x04
	}
	return string(b)
}

func (p *patient) put(path, text string) {
	p.t.Helper()
	file := filepath.Join(p.host.root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) remove(path string) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.host.root, path)); err != nil {
		p.t.Fatal(err)
	}
}

// owns says whose a file is, and its mode.
func (p *patient) owns(path string, uid, gid int, mode fs.FileMode) {
	p.t.Helper()
	p.owners[path] = owner{uid, gid}
	if err := os.Chmod(filepath.Join(p.host.root, path), mode); err != nil {
		p.t.Fatal(err)
	}
}

// enrol writes the configuration and the enrolment.
func (p *patient) enrol(e config.Enrolment) {
	p.t.Helper()
	dir := filepath.Join(p.host.root, "etc/gated")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	seed, _, err := wire.NewDeviceKey()
	if err != nil {
		p.t.Fatal(err)
	}
	e.Seed, e.Place, e.ProgrammeKey = seed, "North 2", strings.Repeat("ab", 32)
	if e.Issued.IsZero() {
		e.Issued = time.Now().Add(-time.Hour).UTC()
	}
	file := filepath.Join(dir, "enrolment.toml")
	if err := os.RemoveAll(file); err != nil {
		p.t.Fatal(err)
	}
	if err := config.WriteEnrolment(file, e); err != nil {
		p.t.Fatal(err)
	}
	p.config = filepath.Join(dir, "gated.toml")
	p.lane(`turnstile = { driver = "sim", file = "/run/gated/turnstile.jsonl" }
reader = [{ driver = "serial", path = "/dev/serial/by-id/usb-Newland_NLS-FM430-if00" }]`)
}

// lane writes the configuration with one lane.
func (p *patient) lane(text string) {
	p.put("/etc/gated/gated.toml", "enrolment = \"enrolment.toml\"\n[[lane]]\n"+text+"\n")
}

// look examines, and gives the report as people read it, with its exit code.
func (p *patient) look() (text string, code int) {
	var b bytes.Buffer
	code = examine(p.t.Context(), p.host, p.config).report(&b, false)
	return strings.ReplaceAll(b.String(), p.host.root, ""), code
}

// answers has a broker behind every address: with a certificate, or plain.
func (p *patient) answers(cert *tls.Certificate) {
	p.host.dial = func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			fmt.Fprintf(theirs, "INFO {\"server_id\":\"X\",\"tls_required\":%v} \r\n", cert != nil)
			if cert != nil {
				s := tls.Server(theirs, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*cert}})
				if s.Handshake() != nil {
					return
				}
				io.Copy(io.Discard, s)
				return
			}
			io.Copy(io.Discard, bufio.NewReader(theirs))
		}()
		return ours, nil
	}
}

func TestDoctorFindsAHealthyBoxWell(t *testing.T) {
	p := newPatient(t)
	p.answers(nil)
	text, code := p.look()
	want := `ok    configuration        /etc/gated/gated.toml
ok    enrolment            /etc/gated/enrolment.toml, for North 2
ok    board                Raspberry Pi 4 Model B Rev 1.4 (bcm2711)
warn  turnstile of lane 1  simulated: no line of this board is touched
                           -> set driver to "gpiochip", or to "rpio" on a Raspberry Pi up to 4, once it is wired
ok    reader 1 of lane 1   /dev/serial/by-id/usb-Newland_NLS-FM430-if00
ok    clock                synchronised, to 12ms
ok    clock chip           rtc0, rtc-ds1307 1-0068
ok    data_dir             /var/lib/gated, of gated
ok    disk space           8000 MB are free
ok    data disk            /var/lib, ext4
ok    fast_commit          off
ok    run_dir              /run/gated, on tmpfs
ok    watchdog             Broadcom BCM2835 Watchdog timer, 15 s
ok    power supply         never too low since the start
ok    broker               nats://127.0.0.1:4222 answers

0 bad, 1 to look at, 14 ok
`
	if text != want || code != 0 {
		t.Errorf("exit %d\n%s\nwant\n%s", code, text, want)
	}
}

func TestDoctorPrintsJSON(t *testing.T) {
	p := newPatient(t)
	p.owns("/var/lib/gated", 0, 0, 0o700)
	var b bytes.Buffer
	code := examine(t.Context(), p.host, p.config).report(&b, true)
	var got struct {
		Findings      []finding
		OK, Warn, Bad int
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	count := map[level]int{}
	for _, f := range got.Findings {
		count[f.Level]++
		if f.Level == levelBad && f.Do == "" {
			t.Errorf("%s: nothing is said to do", f.About)
		}
	}
	if code != 1 || got.Bad == 0 || count[levelBad] != got.Bad || count[levelWarn] != got.Warn || count[levelOK] != got.OK {
		t.Errorf("exit %d, counts %+v of %v", code, got, count)
	}
}

// Each thing that can be wrong, alone on a box that is well otherwise.
func TestDoctorTellsWhatIsWrong(t *testing.T) {
	serial := `turnstile = { driver = "sim", file = "/run/gated/turnstile.jsonl" }
reader = [{ path = "%s", driver = "%s" }]`
	for _, c := range []struct {
		name  string
		harm  func(p *patient)
		level level
		want  string // of one finding, and of its remedy
	}{
		{"enrolment of another", func(p *patient) { p.owners["/etc/gated/enrolment.toml"] = owner{0, 0} }, levelBad, "another user than gated|chown gated:"},
		{"enrolment open", func(p *patient) { p.owns("/etc/gated/enrolment.toml", gatedUID, gatedGID, 0o644) }, levelBad, "lets others read|chmod 600"},
		{"no enrolment", func(p *patient) { p.remove("/etc/gated/enrolment.toml") }, levelBad, "enrolment.toml: "},
		{"unknown key", func(p *patient) { p.lane("turnstyle = 1") }, levelBad, "turnstyle"},
		{"clock in the past", func(p *patient) { p.host.now = func() time.Time { return time.Unix(0, 0) } }, levelBad, "before this box was enrolled|timedatectl"},
		{"clock loose", func(p *patient) { p.synced = false }, levelWarn, "not synchronised|chrony"},
		{"no clock chip", func(p *patient) { p.remove("/sys/class/rtc") }, levelWarn, "nothing remembers the time|fake-hwclock"},
		{"fake-hwclock", func(p *patient) { p.remove("/sys/class/rtc"); p.put("/etc/fake-hwclock.data", "") }, levelWarn, "from where a file says|fit a clock chip"},
		{"data_dir of root", func(p *patient) { p.owns("/var/lib/gated", 0, 0, 0o700) }, levelBad, "gated may not write in /var/lib/gated|chown -R gated:"},
		{"data_dir to be made", func(p *patient) { p.remove("/var/lib/gated") }, levelWarn, "the first start makes it"},
		{"disk full", func(p *patient) { p.free = 1e6 }, levelBad, "1 MB are free|make room"},
		{"disk small", func(p *patient) { p.free = 5e8 }, levelWarn, "500 MB are free|max_size"},
		{"store on tmpfs", func(p *patient) { p.mounted("23", "tmpfs", "rw,noatime") }, levelBad, "a power cut takes every claim|ext4"},
		{"store on overlay", func(p *patient) { p.mounted("23", "overlay", "rw,noatime") }, levelBad, "overlay"},
		{"store on vfat", func(p *patient) { p.mounted("23", "vfat", "rw,noatime") }, levelBad, "vfat"},
		{"read-only", func(p *patient) { p.mounted("23", "ext4", "ro,noatime") }, levelBad, "mounted read-only|the card is failing"},
		{"no barriers", func(p *patient) { p.mounted("23", "ext4", "rw,noatime,nobarrier") }, levelBad, "without barriers"},
		{"atime", func(p *patient) { p.mounted("23", "ext4", "rw,relatime") }, levelWarn, "only read|noatime"},
		{"fast_commit, old kernel", func(p *patient) {
			p.put("/dev/mmcblk0p3", superblock(true))
			p.put("/proc/sys/kernel/osrelease", "5.10.63-v7l+\n")
		}, levelBad, "loses what a file grew by|tune2fs -O ^fast_commit /dev/mmcblk0p3"},
		{"fast_commit, new kernel", func(p *patient) { p.put("/dev/mmcblk0p3", superblock(true)) }, levelOK, "does it right"},
		{"no ext4 there", func(p *patient) { p.put("/dev/mmcblk0p3", strings.Repeat("x", 4096)) }, levelWarn, "not looked at"},
		{"marks on the disk", func(p *patient) { p.mounted("24", "ext4", "rw") }, levelBad, "would outlive it|/run/gated"},
		{"no watchdog", func(p *patient) { p.remove("/sys/class/watchdog/watchdog0") }, levelWarn, "there is none|dtparam=watchdog=on"},
		{"watchdog unfed", func(p *patient) { p.put("/sys/class/watchdog/watchdog0/state", "inactive\n") }, levelWarn, "nobody feeds it|RuntimeWatchdogSec=14"},
		{"voltage low", func(p *patient) { p.put("/sys/devices/platform/soc/soc:firmware/get_throttled", "50005\n") }, levelBad, "too low now"},
		{"voltage was low", func(p *patient) { p.put("/sys/devices/platform/soc/soc:firmware/get_throttled", "50000\n") }, levelWarn, "was too low"},
		{"scanner unplugged", func(p *patient) { p.remove("/dev/serial/by-id/usb-Newland_NLS-FM430-if00") }, levelBad, "is not there|/dev/serial/by-id"},
		{"FIFO to be made", func(p *patient) { p.lane(fmt.Sprintf(serial, "/run/gated/codes", "line")) }, levelOK, "/run/gated/codes, which the gate makes"},
		{"line device unplugged", func(p *patient) { p.lane(fmt.Sprintf(serial, "/dev/ttyACM7", "line")) }, levelBad, "is not there"},
		{"scanner of root", func(p *patient) { p.owns("/dev/serial/by-id/usb-Newland_NLS-FM430-if00", 0, 0, 0o600) }, levelBad, "may not open|udev rules"},
		{"scanner to be read only", func(p *patient) { p.owns("/dev/serial/by-id/usb-Newland_NLS-FM430-if00", 0, dialoutGID, 0o640) }, levelBad, "may not open|udev rules"},
		{"not in group", func(p *patient) { p.put("/etc/group", "dialout:x:20:pi\ngpio:x:997:gated\n") }, levelBad, "may not open|usermod -aG dialout gated"},
		{"scanner by number", func(p *patient) {
			p.lane(fmt.Sprintf(serial, "/dev/ttyACM0", "serial"))
			p.put("/dev/ttyACM0", "")
		}, levelWarn, "another device after a restart|/dev/serial/by-id"},
		{"console on the scanner", func(p *patient) {
			p.lane(fmt.Sprintf(serial, "/dev/ttyAMA0", "serial"))
			p.put("/dev/ttyAMA0", "")
			if err := os.Symlink("ttyAMA0", p.host.at("/dev/serial0")); err != nil {
				p.t.Fatal(err)
			}
			p.put("/proc/cmdline", "console=tty1 console=serial0,115200 quiet")
		}, levelBad, "console is on /dev/ttyAMA0|console=serial0"},
		{"no broker", func(*patient) {}, levelBad, "no broker of 1 can be reached|admits alone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t)
			c.harm(p)
			x := examine(t.Context(), p.host, p.config)
			found, remedy, _ := strings.Cut(c.want, "|")
			for _, f := range x.findings {
				if f.Level == c.level && strings.Contains(f.Found, found) && strings.Contains(f.Do, remedy) {
					return
				}
			}
			text, _ := p.look()
			t.Errorf("no finding %q %q:\n%s", c.level, c.want, text)
		})
	}
}

// mounted changes one line of mountinfo.
func (p *patient) mounted(id, kind, options string) {
	var out strings.Builder
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if f[0] == id {
			line = fmt.Sprintf("%s 22 0:9 / %s %s - %s /dev/mmcblk0p3 rw\n", id, f[4], options, kind)
		}
		out.WriteString(line)
	}
	p.put("/proc/self/mountinfo", out.String())
}

func TestDoctorOnGPIO(t *testing.T) {
	var pins map[string]int
	var low []string
	var allow bool
	for _, c := range []struct {
		name   string
		harm   func(p *patient)
		driver string
		level  level
		want   string
	}{
		{"well", func(*patient) {}, "gpiochip", levelOK, "pinctrl-bcm2711 (gpiochip0)"},
		{"lets go", func(*patient) {}, "gpiochip", levelOK, "strict_gpiod"},
		{"keeps levels", func(p *patient) {
			p.put("/sys/module/pinctrl_bcm2835/parameters/persist_gpio_outputs", "Y\n")
		}, "gpiochip", levelWarn, "keeps the level|dtparam=strict_gpiod"},
		{"says nothing of levels", func(p *patient) { p.remove("/sys/module/pinctrl_bcm2835") }, "gpiochip", levelWarn, "does not say|kill -9"},
		{"says nothing of levels on another board", func(p *patient) {
			p.remove("/sys/module/pinctrl_bcm2835")
			p.put("/proc/device-tree/compatible", "linux,dummy-virt\x00")
		}, "gpiochip", levelWarn, "does not say|kill -9"},
		{"held", func(p *patient) { pins["green"] = 4 }, "gpiochip", levelBad, "green is on line 4, which \"w1\" holds|another pin"},
		{"beyond", func(p *patient) { pins["green"] = 58 }, "gpiochip", levelBad, "has 0 to 57|pin table"},
		{"wrong label", func(p *patient) { p.chips = p.chips[:1] }, "gpiochip", levelBad, "no GPIO chip \"pinctrl-bcm2711\"|raspberrypi-exp-gpio"},
		{"no chip", func(p *patient) { p.chips = nil }, "gpiochip", levelBad, "no GPIO chip|CONFIG_GPIO_CDEV"},
		{"not allowed", func(p *patient) { p.owns("/dev/gpiochip0", 0, 0, 0o600) }, "gpiochip", levelBad, "may not open /dev/gpiochip0|99-admitone.rules"},
		{"rpio", func(*patient) {}, "rpio", levelOK, "rpio on bcm2711"},
		{"rpio on a Pi 5", func(p *patient) { p.put("/proc/device-tree/compatible", compatible5) }, "rpio", levelBad, "Raspberry Pi 0 to 4|gpiochip"},
		{"rpio without gpiomem", func(p *patient) { p.remove("/dev/gpiomem") }, "rpio", levelBad, "/dev/gpiomem is not there|gpiochip"},
		{"rpio by all memory", func(p *patient) { p.put("/dev/mem", ""); allow = true }, "rpio", levelOK, "by /dev/mem, the whole memory"},
		{"rpio by all memory unasked", func(p *patient) { p.put("/dev/mem", "") }, "rpio", levelBad, "may open /dev/mem|allow_dev_mem"},
		{"rpio kept from all memory", func(p *patient) {
			p.put("/dev/mem", "")
			p.owns("/dev/mem", 0, 0, 0o640)
			allow = true
		}, "rpio", levelOK, "by /dev/gpiomem"},
		{"relay pulled down", func(*patient) {}, "gpiochip", "", "opens at every boot"},
		{"relay pulled down, active low", func(*patient) { low = []string{"relay"} }, "gpiochip", levelWarn, "low from power-on|boot test"},
		{"relay pulled up", func(*patient) { pins["relay"] = 5 }, "rpio", levelWarn, "high from power-on|other pull"},
		{"relay pulled up, active low", func(*patient) { pins["relay"], low = 5, []string{"relay"} }, "rpio", "", "opens at every boot"},
		{"relay on the console", func(*patient) { pins["relay"] = 14 }, "gpiochip", levelWarn, "high from power-on"},
		{"rpio keeps levels", func(*patient) {}, "rpio", levelWarn, "keep their level|pulse limiter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t)
			pins, low = map[string]int{"relay": 17, "green": 22}, nil
			allow = false
			c.harm(p)
			x := &examination{host: p.host}
			x.turnstile("turnstile", config.Turnstile{Driver: c.driver, Chip: "pinctrl-bcm2711", Pins: pins, ActiveLow: low, AllowDevMem: allow})
			found, remedy, _ := strings.Cut(c.want, "|")
			for _, f := range x.findings {
				if strings.Contains(f.Found, found) && strings.Contains(f.Do, remedy) && (f.Level == c.level || c.level == "") {
					if c.level == "" {
						t.Errorf("found %+v", f)
					}
					return
				}
			}
			if c.level != "" {
				t.Errorf("no finding %q %q in %+v", c.level, c.want, x.findings)
			}
		})
	}
}

func TestDoctorChecksTheBrokersKeyAndDate(t *testing.T) {
	for _, c := range []struct {
		name   string
		life   time.Duration
		pinned bool
		level  level
		want   string
	}{
		{"well", 365 * 24 * time.Hour, true, levelOK, "answers"},
		{"soon over", 10 * 24 * time.Hour, true, levelWarn, "certificate expires on|renew it"},
		{"over", time.Hour, true, levelWarn, "certificate expired on|renew it"},
		{"another key", 365 * 24 * time.Hour, false, levelBad, "another key|enrol this box anew"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, key, err := wire.NewCertificate("broker", time.Now().Add(-2*time.Hour), c.life)
			if err != nil {
				t.Fatal(err)
			}
			pin, err := wire.Pin(cert)
			if err != nil {
				t.Fatal(err)
			}
			if !c.pinned {
				other := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
				pin = hex.EncodeToString(other)
			}
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			p := newPatient(t)
			p.enrol(config.Enrolment{Brokers: []string{"tls://ledger.example.org:4222"}, BrokerKeys: []string{pin}})
			p.answers(&pair)
			x := examine(t.Context(), p.host, p.config)
			found, remedy, _ := strings.Cut(c.want, "|")
			for _, f := range x.findings {
				if f.Level == c.level && f.About == "broker" && strings.Contains(f.Found, found) && strings.Contains(f.Do, remedy) {
					return
				}
			}
			t.Errorf("no finding %q %q in %+v", c.level, c.want, x.findings)
		})
	}
}

func TestDoctorHearsWhoIsNoBroker(t *testing.T) {
	p := newPatient(t)
	p.host.dial = func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			fmt.Fprint(theirs, "220 mail.example.org ESMTP\r\n")
			theirs.Close()
		}()
		return ours, nil
	}
	if text, code := p.look(); code != 1 || !strings.Contains(text, "no broker: it greets in other words") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

func TestKernelsThatLoseFastCommits(t *testing.T) {
	for release, loses := range map[string]bool{
		"5.10.63-v7l+": true, "5.10.94": false, "5.10.103+": false, "5.11.0": true, "5.15.26-v8+": true, "5.15.27": false,
		"5.16.20": true, "5.17.0": false, "6.1.21-v8+": false, "6.6.51+rpt-rpi-v8": false, "4.19.1": false, "5.4.0": false, "?": true, "": true,
	} {
		if got := losesFastCommits(release); got != loses {
			t.Errorf("kernel %q: %v", release, got)
		}
	}
}

// It looks and does not touch: not a file is made, changed or removed.
func TestDoctorChangesNothing(t *testing.T) {
	p := newPatient(t)
	p.remove("/var/lib/gated")
	before := listing(t, p.host.root)
	p.look()
	if after := listing(t, p.host.root); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func listing(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

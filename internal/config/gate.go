package config

import (
	"path/filepath"
	"strconv"
	"time"
)

// Gate is the configuration of gated. The durations' sources are sections 2 and
// 3 of the specification.
type Gate struct {
	// Enrolment is the file that gatectl gate add wrote: this device's key, its
	// place, and whom it talks to. Required.
	Enrolment string `toml:"enrolment"`

	// Device is what the enrolment file says.
	Device Enrolment `toml:"-"`

	DataDir string `toml:"data_dir,omitempty"` // default /var/lib/gated: the store
	RunDir  string `toml:"run_dir,omitempty"`  // default /run/gated, on tmpfs: the marks of what fired, gone with the power
	Control string `toml:"control,omitempty"`  // the local socket; default RUN_DIR/control.sock
	Demo    bool   `toml:"demo,omitempty"`     // accept ticket keys that are marked demo: their private halves are public

	Offline        Policy   `toml:"offline,omitempty"`         // without an answer of the ledger; default admit
	LedgerPatience Duration `toml:"ledger_patience,omitempty"` // how long the ledger has to answer; default 400ms
	PeerPatience   Duration `toml:"peer_patience,omitempty"`   // how long peers have while only they are there; default 50ms
	UntrustedClock Policy   `toml:"untrusted_clock,omitempty"` // time windows while the clock is not trusted; default admit, marked
	Amnesia        Amnesia  `toml:"amnesia,omitempty"`         // after a lost store; default admit
	AmnesiaWait    Duration `toml:"amnesia_wait,omitempty"`    // how long it waits to catch up first; default 60s
	Rearm          Duration `toml:"rearm,omitempty"`           // a ticket unread for this long ends its presentation; default 1.5s
	FireWithin     Duration `toml:"fire_within,omitempty"`     // an older claim opens no more; default 10s
	MaxSize        Size     `toml:"max_size,omitempty"`        // of the store; default 1GB

	Verdicts string `toml:"verdicts,omitempty"` // a file for verdicts, a JSON object a line; "": none, "-": standard output
	Results  string `toml:"results,omitempty"`  // a file for the claims' ends; "": none

	Lanes []Lane `toml:"lane"`
	Sim   Sim    `toml:"sim,omitempty"`
}

// Lane is one turnstile with what reads tickets for it.
type Lane struct {
	Name           string    `toml:"name,omitempty"`            // default: the lane's number, from 1
	PassageTimeout Duration  `toml:"passage_timeout,omitempty"` // how long somebody has to go through; default 10s, above release_time
	OnNoPassage    NoPassage `toml:"on_no_passage,omitempty"`   // default annul
	LatePassage    Duration  `toml:"late_passage,omitempty"`    // a passage this long after the annulment still counts; default 30s
	Credits        int       `toml:"credits,omitempty"`         // claims the turnstile can remember; default 1
	ReleaseTime    Duration  `toml:"release_time,omitempty"`    // how long the turnstile itself stays released, by its data sheet; default 5s
	Turnstile      Turnstile `toml:"turnstile"`
	Readers        []Reader  `toml:"reader,omitempty"`
	Camera         *Camera   `toml:"camera,omitempty"`
}

// Sensor reports whether the passage input is wired; without one the pulse is
// the result.
func (l Lane) Sensor() bool { return l.Turnstile.has(PassageIn) }

// Sim is for rehearsals only.
type Sim struct {
	// ClockOffsetFile holds a duration, read again each second, that this gate's
	// clock is wrong by.
	ClockOffsetFile string `toml:"clock_offset_file,omitempty"`
}

func (g *Gate) setDefaults() {
	*g = Gate{
		DataDir: "/var/lib/gated", RunDir: "/run/gated",
		Offline: Admit, LedgerPatience: ms(400), PeerPatience: ms(50),
		UntrustedClock: Admit, Amnesia: AmnesiaAdmit, AmnesiaWait: ms(60_000),
		Rearm: ms(1500), FireWithin: ms(10_000), MaxSize: 1e9,
	}
}

func (l *Lane) setDefaults() {
	*l = Lane{
		PassageTimeout: ms(10_000), OnNoPassage: Annul, LatePassage: ms(30_000),
		Credits: 1, ReleaseTime: ms(5000),
	}
	l.Turnstile.setDefaults()
}

func ms(n int) Duration { return Duration(time.Duration(n) * time.Millisecond) }

// LoadGate reads a gate's configuration and its enrolment. An error is of type
// Problems and has everything that is wrong with both files.
func LoadGate(file string) (Gate, error) {
	var g Gate
	r := decode(file, &g)
	if r.unread {
		return g, r.err()
	}
	g.complete(r.dir)
	g.check(r)
	if g.Enrolment != "" {
		er := decode(g.Enrolment, &g.Device)
		g.Device.check(er)
		r.list = append(r.list, er.list...)
	}
	return g, r.err()
}

// complete fills in what depends on other keys, and makes paths absolute or
// relative to where the process is.
func (g *Gate) complete(dir string) {
	for _, p := range []*string{&g.Enrolment, &g.DataDir, &g.RunDir, &g.Control, &g.Verdicts, &g.Results, &g.Sim.ClockOffsetFile} {
		resolve(p, dir)
	}
	if g.Control == "" {
		g.Control = filepath.Join(g.RunDir, "control.sock")
	}
	for i := range g.Lanes {
		l := &g.Lanes[i]
		if l.Name == "" {
			l.Name = strconv.Itoa(i + 1)
		}
		l.Turnstile.complete(dir)
		for j := range l.Readers {
			l.Readers[j].complete(dir)
		}
		if l.Camera != nil {
			l.Camera.complete(dir)
		}
	}
}

// resolve makes a path relative to dir; "" and "-" are no paths.
func resolve(p *string, dir string) {
	if *p != "" && *p != "-" && !filepath.IsAbs(*p) {
		*p = filepath.Join(dir, *p)
	}
}

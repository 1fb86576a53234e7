package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxSocket is what a Unix socket's path may be long (sun_path of Linux, less
// its zero byte).
const maxSocket = 107

// minStore is the least size of a store: below it the first event's code list
// would not fit.
const minStore = Size(16e6)

// maxLease is the longest lease that a claim record may carry; it is the
// passage_timeout + fire_within + 5 s (protocol, "only a record frees").
const maxLease = time.Hour

func (g *Gate) check(r *report) {
	r.required("enrolment", g.Enrolment, "name the file that `gatectl gate add PLACE` wrote")
	r.required("data_dir", g.DataDir, "name a folder on a disk")
	r.required("run_dir", g.RunDir, "name a folder on tmpfs, as in \"/run/gated\"")
	if g.DataDir != "" && g.DataDir == g.RunDir {
		r.add("run_dir", "is also data_dir: the marks in it must be gone after a power cut, and the store must not", "name a folder on tmpfs, as in \"/run/gated\"")
	}
	if len(g.Control) > maxSocket {
		r.addf("control", "name a shorter path", "%q is %d bytes long, a socket's path has at most %d", g.Control, len(g.Control), maxSocket)
	}
	r.positive("ledger_patience", g.LedgerPatience)
	r.positive("peer_patience", g.PeerPatience)
	r.positive("rearm", g.Rearm)
	if g.LedgerPatience >= g.FireWithin {
		r.addf("fire_within", "set it above ledger_patience", "%s is not longer than ledger_patience %s: no claim would open", g.FireWithin, g.LedgerPatience)
	}
	if g.MaxSize < minStore {
		r.addf("max_size", fmt.Sprintf("set it to at least %s", minStore), "%s is too small for a store", g.MaxSize)
	}
	if g.Results == "-" {
		r.add("results", "\"-\" is for verdicts only", "name a file")
	}
	g.checkLanes(r)
}

func (g *Gate) checkLanes(r *report) {
	if len(g.Lanes) == 0 {
		r.add("lane", "missing: there is nothing to open", "add [[lane]] with [lane.turnstile] and a [[lane.reader]] or [lane.camera]")
	}
	names := map[string]int{}
	paths := map[string]string{}
	for i := range g.Lanes {
		l := &g.Lanes[i]
		at := fmt.Sprintf("lane[%d]", i)
		if j, taken := names[l.Name]; taken {
			r.addf(at+".name", "give each lane its own name", "%q is also the name of lane[%d]", l.Name, j)
		}
		names[l.Name] = i
		l.check(r, at, time.Duration(g.FireWithin))
		for j, rd := range l.Readers {
			rd.checkOnce(r, fmt.Sprintf("%s.reader[%d].path", at, j), paths)
		}
	}
	g.sharedPins(r)
	g.sharedCameras(r)
}

func (l *Lane) check(r *report, at string, fireWithin time.Duration) {
	r.name(at+".name", l.Name)
	r.positive(at+".release_time", l.ReleaseTime)
	if l.PassageTimeout <= l.ReleaseTime {
		r.addf(at+".passage_timeout", "set it above release_time", "%s is not longer than release_time %s", l.PassageTimeout, l.ReleaseTime)
	} else if time.Duration(l.PassageTimeout)+fireWithin+5*time.Second > maxLease {
		r.addf(at+".passage_timeout", "set it to some seconds", "%s with fire_within is a lease of more than %s", l.PassageTimeout, maxLease)
	}
	if l.Credits < 1 || l.Credits > 100 {
		r.addf(at+".credits", "set it to 1, or to what the turnstile remembers (at most 100)", "%d is no number of passages", l.Credits)
	}
	if len(l.Readers) == 0 && l.Camera == nil {
		r.add(at+".reader", "missing: nothing reads tickets for this lane", "add [[lane.reader]] or [lane.camera]")
	}
	l.Turnstile.check(r, at+".turnstile", l)
	for i, rd := range l.Readers {
		rd.check(r, fmt.Sprintf("%s.reader[%d]", at, i))
	}
	if l.Camera != nil {
		l.Camera.check(r, at+".camera", &l.Turnstile)
	}
}

func (r *report) required(key, value, right string) {
	if value == "" {
		r.add(key, "missing", right)
	}
}

func (r *report) positive(key string, d Duration) {
	if d <= 0 {
		r.addf(key, "set it above 0s", "%s is no time at all", d)
	}
}

func (r *report) oneOf(key, value string, known []string) {
	if !slices.Contains(known, value) {
		r.addf(key, "write one of "+quoted(known), "%s is not one of the choices", show(value))
	}
}

// driver checks a driver's name against those that are built in.
func (r *report) driver(key, value string, known ...string) {
	switch {
	case value == "":
		r.add(key, "missing", "the drivers here are "+quoted(known))
	case !slices.Contains(known, value):
		r.addf(key, "the drivers here are "+quoted(known), "there is no driver %s", show(value))
	}
}

// names checks a list of names against the known ones; each may stand once.
func (r *report) names(key string, list, known []string) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		r.oneOf(at, s, known)
		if slices.Contains(list[:i], s) {
			r.addf(at, "name it once", "%s stands there twice", show(s))
		}
	}
}

// name checks a name that stands in records and subjects of logs: 1 to 256
// bytes, as records allow, and printable.
func (r *report) name(key, s string) {
	bad := strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f || c == 0xfffd }) >= 0
	if s == "" || len(s) > 256 || bad {
		r.addf(key, "write 1 to 256 printable characters", "%s is not a name", show(s))
	}
}

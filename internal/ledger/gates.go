package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"admitone/internal/ticket"
)

// Roles and states of devices, as FeedGate carries them.
const (
	RoleGate      = "gate"
	RoleBroker    = "broker"
	StateEnrolled = "enrolled"
	StateRevoked  = "revoked" // replaced, or its key is not to be trusted
	StateLost     = "lost"    // gone with whatever it had not sent
)

// GateEntry is one device as the feeds enrolled it.
type GateEntry struct {
	Device ticket.Source `json:"device"`
	Place  string        `json:"place"`
	Key    string        `json:"key"` // the public NKey
	Role   string        `json:"role"`
	State  string        `json:"state"`
}

// EnrolGate lets a device in at a place. The same again changes nothing. It
// returns ErrTaken where another device stands there (swap it) or the device
// stands elsewhere, and ErrInvalid for a key or place that is none, or for a
// device that was revoked: a revoked key stays so.
func (w *Within) EnrolGate(place, publicKey, role string) (GateEntry, error) {
	e, err := w.t.enrol(place, publicKey, role)
	return e, wrap("enrol "+place, err)
}

func (t *txn) enrol(place, publicKey, role string) (GateEntry, error) {
	e := GateEntry{Place: place, Key: publicKey, Role: role, State: StateEnrolled}
	if err := checkPlace(place); err != nil {
		return e, err
	}
	if role != RoleGate && role != RoleBroker {
		return e, fmt.Errorf("role %q, want %q or %q: %w", role, RoleGate, RoleBroker, ErrInvalid)
	}
	var err error
	if e.Device, err = t.l.deviceID(publicKey); err != nil {
		return e, err
	}
	all, err := t.gates()
	if err != nil {
		return e, err
	}
	for _, g := range all {
		switch {
		case g == e:
			return e, nil
		case g.Device == e.Device && g.State == StateRevoked:
			return e, fmt.Errorf("device %s was revoked, give it a new key: %w", g.Device, ErrInvalid)
		case g.Device == e.Device && g.State == StateEnrolled:
			return e, fmt.Errorf("device %s stands at %q: %w", g.Device, g.Place, ErrTaken)
		case g.Place == place && g.State == StateEnrolled:
			return e, fmt.Errorf("device %s stands at %q: %w", g.Device, place, ErrTaken)
		}
	}
	t.say(func() { t.l.log.Info("gate enrolled", "place", place, "device", e.Device, "role", role) })
	return e, t.putGate(e)
}

func (l *Ledger) deviceID(publicKey string) (ticket.Source, error) {
	if l.opt.DeviceID == nil {
		return "", fmt.Errorf("this ledger enrols no devices: %w", ErrInvalid)
	}
	d, err := l.opt.DeviceID(publicKey)
	if err != nil {
		return "", errors.Join(ErrInvalid, err)
	}
	return d, nil
}

func checkPlace(s string) error {
	const most = 64 // as a programme's places
	if s == "" || len(s) > most || strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("place %q, want 1 to %d bytes of printing text: %w", s, most, ErrInvalid)
	}
	return nil
}

// putGate writes a device's entry under a version above all devices', so that the
// highest one is also the list's: it grows with each change, whichever of several
// ledgers writes it and whatever its clock says.
func (t *txn) putGate(e GateEntry) error {
	version, err := t.listVersion()
	if err != nil {
		return err
	}
	_, err = t.feed(ticket.Feed{
		Subject: ticket.GateSubject(e.Device), Version: max(version+1, uint64(max(0, t.now.UnixMilli()))),
		Gate: &ticket.FeedGate{Device: e.Device, Place: e.Place, Key: e.Key, Role: e.Role, State: e.State},
	})
	return err
}

func (t *txn) listVersion() (version uint64, err error) {
	err = t.Subjects(ticket.GateSubject(""), func(_ string, r SubjectRow) bool {
		version = max(version, r.Version)
		return true
	})
	return version, err
}

// gates lists all devices, ordered by id.
func (t *txn) gates() ([]GateEntry, error) {
	var subjects []string
	err := t.Subjects(ticket.GateSubject(""), func(name string, _ SubjectRow) bool {
		subjects = append(subjects, name)
		return true
	})
	if err != nil {
		return nil, err
	}
	var out []GateEntry
	for _, s := range subjects {
		f, err := t.feedOf(s)
		if err != nil {
			return nil, err
		}
		if g := f.Gate; g != nil {
			out = append(out, GateEntry{Device: g.Device, Place: g.Place, Key: g.Key, Role: g.Role, State: g.State})
		}
	}
	return out, nil
}

// gateAt finds a device by its id, or by the place it is enrolled at.
func (t *txn) gateAt(name string) (GateEntry, error) {
	all, err := t.gates()
	if err != nil {
		return GateEntry{}, err
	}
	for _, g := range all {
		if string(g.Device) == name || g.Place == name && g.State == StateEnrolled {
			return g, nil
		}
	}
	return GateEntry{}, fmt.Errorf("gate %q: %w", name, ErrNotFound)
}

// SwapGate lets a spare take over a place: a new device, or one that was enrolled
// elsewhere and moves. The records of the box that stood there stay welcome; what
// it admits from now on raises an alarm.
func (w *Within) SwapGate(place, sparePublicKey string) (GateEntry, error) {
	e, err := w.t.swap(place, sparePublicKey)
	return e, wrap("swap gate", err)
}

func (t *txn) swap(place, spareKey string) (GateEntry, error) {
	old, err := t.gateAt(place)
	if err != nil || old.Key == spareKey {
		return old, err
	}
	if err := t.distrust(old, "replaced"); err != nil {
		return old, err
	}
	return t.move(old, spareKey)
}

// move puts a spare in the place of a device that was revoked just now.
func (t *txn) move(old GateEntry, key string) (GateEntry, error) {
	all, err := t.gates()
	if err != nil {
		return GateEntry{}, err
	}
	for _, g := range all {
		if g.Key != key || g.State != StateEnrolled {
			continue
		}
		if g.Role != old.Role {
			return g, fmt.Errorf("device %s is a %s, %q needs a %s: %w", g.Device, g.Role, old.Place, old.Role, ErrInvalid)
		}
		t.say(func() { t.l.log.Info("gate moved", "from", g.Place, "place", old.Place, "device", g.Device) })
		g.Place = old.Place
		return g, t.putGate(g)
	}
	return t.enrol(old.Place, key, old.Role)
}

// RevokeGate takes a device's key back, named by its id or place.
func (w *Within) RevokeGate(name string) (GateEntry, error) {
	g, err := w.t.gateAt(name)
	if err != nil || g.State == StateRevoked {
		return g, wrap("revoke gate", err)
	}
	err = w.t.distrust(g, "revoked")
	g.State = StateRevoked
	return g, wrap("revoke gate", err)
}

// distrust revokes a device and raises an alarm for what it admits after now.
func (t *txn) distrust(g GateEntry, reason string) error {
	g.State = StateRevoked
	t.say(func() { t.l.log.Info("gate revoked", "place", g.Place, "device", g.Device, "reason", reason) })
	if err := t.putGate(g); err != nil {
		return err
	}
	_, err := t.feed(ticket.Feed{Subject: ticket.DistrustSubject(g.Device), Distrust: &ticket.FeedDistrust{
		Device: g.Device, Since: t.now.UnixNano(), Reason: reason,
	}})
	return err
}

// LostGate gives a device up, named by its id or place: pruning no longer waits
// for what it had not sent.
func (w *Within) LostGate(name string) (GateEntry, error) {
	g, err := w.t.gateAt(name)
	if err != nil || g.State == StateLost {
		return g, wrap("mark gate lost", err)
	}
	g.State = StateLost
	w.t.say(func() { w.t.l.log.Info("gate lost", "place", g.Place, "device", g.Device) })
	return g, wrap("mark gate lost", w.t.putGate(g))
}

// GateList gives all devices, ordered by id, and the version of the list, for
// brokers; the adapter signs it. Ledgers on one store give the same.
func (l *Ledger) GateList(ctx context.Context) (out []GateEntry, version uint64, err error) {
	err = l.view(ctx, func(t *txn) (err error) {
		if version, err = t.listVersion(); err == nil {
			out, err = t.gates()
		}
		return err
	})
	return out, version, wrap("list gates", err)
}

// Gate is a device as the operators' page shows it.
type Gate struct {
	GateEntry
	Heard       string          `json:"heard"` // when a head came last, ticket.TimeFormat; empty: never since the start
	Link        string          `json:"link"`
	Clock       ticket.Class    `json:"clock"`
	Mode        ticket.GateMode `json:"mode"`
	Note        string          `json:"note"`
	Outstanding uint64          `json:"outstanding"` // records that it has and the ledger has not
	Lost        uint64          `json:"lost"`        // records that will never come
	SetAside    uint64          `json:"set_aside"`   // records that could not be read
}

// Gates lists the devices that are enrolled, and those that are not but were
// heard, ordered by place and device.
func (l *Ledger) Gates(ctx context.Context) (out []Gate, err error) {
	err = l.view(ctx, func(t *txn) error {
		all, err := t.gates()
		if err != nil {
			return err
		}
		heard := l.live.snapshot()
		out = make([]Gate, 0, len(all))
		for _, e := range all {
			g, err := t.gate(e, heard[e.Device])
			if err != nil {
				return err
			}
			out = append(out, g)
			delete(heard, e.Device)
		}
		for d, h := range heard {
			g, err := t.gate(GateEntry{Device: d, Place: h.head.Place, Role: RoleGate}, h)
			if err != nil {
				return err
			}
			out = append(out, g)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Gate) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Device, b.Device))
	})
	return out, wrap("list gates", err)
}

func (t *txn) gate(e GateEntry, h heard) (Gate, error) {
	g := Gate{GateEntry: e}
	if !h.at.IsZero() {
		g.Heard = h.at.UTC().Format(ticket.TimeFormat)
		g.Link, g.Clock, g.Mode, g.Note = h.head.Link, h.head.Clock, h.head.Mode, h.head.Note
	}
	found := false
	err := t.Streams(e.Device, func(s ticket.Stream, r StreamRow) bool {
		head := r.Head
		if s.Run == h.head.Run {
			head, found = max(head, h.head.Pos), true
		}
		g.Outstanding += head - min(head, r.High)
		g.Lost += r.Lost
		g.SetAside += r.Aside
		return true
	})
	if !found {
		g.Outstanding += h.head.Pos
	}
	return g, err
}

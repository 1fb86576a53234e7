package gate

import (
	"context"
	"time"

	"admitone/internal/ticket"
)

// Status is how a gate stands, for people and for its socket.
type Status struct {
	Place     string          `json:"place"`
	Device    ticket.Source   `json:"device"`
	Run       ticket.Run      `json:"run"`
	Mode      ticket.GateMode `json:"mode"`
	Link      string          `json:"link"` // up, suspect, peers or alone
	Clock     ticket.Class    `json:"clock"`
	Time      string          `json:"time"`
	Programme uint64          `json:"programme"` // version, 0: none
	Events    []string        `json:"events"`    // on now, at this place
	LastEvent string          `json:"last_event,omitempty"`
	Amnesia   bool            `json:"amnesia"`
	Fault     string          `json:"fault,omitempty"`
	Lanes     []LaneStatus    `json:"lanes"`
	Devices   []DeviceStatus  `json:"devices"` // what hangs on the gate; the loop does not know it, who owns it adds it
	Counts    Counts          `json:"counts"`
}

// DeviceOK is the state of a device that works.
const DeviceOK = "ok"

// DeviceStatus is how a device stands: a reader, a camera. One that is lost costs its
// own looks and nothing else: the gate decides on with the others.
type DeviceStatus struct {
	Name  string `json:"name"`  // as in "lane 1: reader 2 (serial)"
	State string `json:"state"` // DeviceOK, or what is wrong with it and what to do
}

// LaneStatus is how one lane stands.
type LaneStatus struct {
	Name    string   `json:"name"`
	Ready   bool     `json:"ready"`
	Open    []string `json:"open"` // claims that have not ended
	Suspect bool     `json:"sensor_suspect"`
	Shown   int      `json:"shown"` // presentations under way
}

// Status asks the loop.
func (g *Gate) Status(ctx context.Context) (s Status, err error) {
	err = g.call(ctx, func(context.Context) error {
		now, class := g.o.Clock.Now()
		s = Status{
			Place: g.o.Place, Device: g.o.Device, Run: g.store.Run(), Mode: g.mode, Link: g.wire.Link().Word(),
			Clock: class, Time: now.Format(ticket.TimeFormat), Amnesia: g.amnesia, Fault: g.fault,
			LastEvent: g.lastEvent, Counts: g.counts, Events: []string{}, Devices: []DeviceStatus{},
		}
		if g.programme != nil {
			s.Programme = g.programme.Version
			for _, e := range g.programme.Serving(g.where()) {
				s.Events = append(s.Events, e.ID)
			}
		}
		for _, l := range g.lanes {
			ls := LaneStatus{Name: l.Name, Ready: l.Turnstile.Ready(), Open: []string{}, Suspect: l.suspect, Shown: len(l.shown)}
			for _, oc := range l.open {
				ls.Open = append(ls.Open, oc.id.String())
			}
			s.Lanes = append(s.Lanes, ls)
		}
		return nil
	})
	return s, err
}

// Note is what is wrong, in words for the operators' page; "" where nothing is.
func (s Status) Note() string {
	switch {
	case s.Fault != "":
		return "fault: " + s.Fault
	case s.Programme == 0:
		return "no programme"
	case s.Amnesia:
		return "catching up"
	}
	for _, l := range s.Lanes {
		switch {
		case l.Suspect:
			return "lane " + l.Name + ": passage sensor is suspect"
		case !l.Ready:
			return "lane " + l.Name + ": turnstile is not ready"
		}
	}
	for _, d := range s.Devices {
		if d.State != DeviceOK {
			return d.Name + ": " + d.State
		}
	}
	if s.Clock == ticket.Untrusted {
		return "clock untrusted"
	}
	return ""
}

// WaitReady returns once the gate can judge tickets: it has a programme and
// knows what it admitted before.
func (g *Gate) WaitReady(ctx context.Context) error {
	for {
		s, err := g.Status(ctx)
		if err != nil {
			return err
		}
		if s.Programme > 0 && !s.Amnesia {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tick):
		}
	}
}

// LaneName gives the name of a lane, counted from 0.
func (g *Gate) LaneName(i int) string { return g.lanes[i].Name }

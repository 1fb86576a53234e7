package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

func deviceCommands() []command {
	return []command{{
		name: "gate add", args: "PLACE", about: "Enrol a new box at a place, and write its enrolment file", min: 1, max: 1, uses: reads | writes, flags: addFlags,
		help: "The file is the box's key and whom it trusts: with it a fresh box starts. Keep it secret,\nand give it to one box only. Gates behind a venue's broker need -brokers and -broker-keys.",
	}, {
		name: "gate swap", args: "PLACE [SPARE]", about: "Let a spare box take over a place", min: 1, max: 2, uses: reads | writes, flags: swapFlags,
		help: "SPARE is the place or device id of a box that was enrolled ahead: where it is connected it takes\nover within seconds. Without one, -out names the enrolment file to write for a fresh box.\nThe records of the box that stood there stay welcome; what it admits from now on raises an alarm.",
	}, {
		name: "gate revoke", args: "NAME", about: "Take a box's key back, named by its place or device id", min: 1, max: 1, uses: writes,
		flags: noFlags(change("✓ revoked", (*ledgerhttp.Client).RevokeGate)),
	}, {
		name: "gate lost", args: "NAME", about: "Give a box up with whatever it had not sent", min: 1, max: 1, uses: writes,
		flags: noFlags(change("✓ given up", (*ledgerhttp.Client).LostGate)),
		help:  "Closed events wait for the records of every box before they are forgotten; not for a lost one's.",
	}, {
		name: "gate list", about: "List all boxes and how they stand", uses: reads, flags: noFlags(listGates),
	}}
}

// enrolling is what gate add and gate swap were told.
type enrolling struct {
	out, brokers, pins string
	broker             bool
	enrol              func(ctx context.Context, c *ledgerhttp.Client, place, key string) (ledger.GateEntry, error)
}

func (e *enrolling) declare(fs *flag.FlagSet) {
	fs.StringVar(&e.out, "out", "", "the enrolment `FILE` to write; needed")
	fs.StringVar(&e.brokers, "brokers", "", "the brokers' `URLS` with commas between; default what the ledger names")
	fs.StringVar(&e.pins, "broker-keys", "", "the SHA-256 `HASHES` of their keys, with commas between")
}

func addFlags(fs *flag.FlagSet) action {
	e := enrolling{}
	e.declare(fs)
	fs.BoolVar(&e.broker, "broker", false, "the box is a venue's broker, not a gate")
	e.enrol = func(ctx context.Context, c *ledgerhttp.Client, place, key string) (ledger.GateEntry, error) {
		role := ledger.RoleGate
		if e.broker {
			role = ledger.RoleBroker
		}
		return c.AddGate(ctx, place, key, role)
	}
	return e.run
}

func swapFlags(fs *flag.FlagSet) action {
	e := enrolling{enrol: func(ctx context.Context, c *ledgerhttp.Client, place, key string) (ledger.GateEntry, error) {
		return c.SwapGate(ctx, place, key)
	}}
	e.declare(fs)
	fs.BoolVar(&e.broker, "broker", false, "the place is a venue's broker")
	return func(ctx context.Context, c *call) error {
		if len(c.args) == 1 {
			return e.run(ctx, c)
		}
		if e.out != "" {
			return wrongUsage("-out is for a fresh box, SPARE for one that was enrolled ahead: give one of them")
		}
		return swapSpare(ctx, c)
	}
}

// swapSpare moves a box that is enrolled to another's place.
func swapSpare(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(reads | writes)
	if err != nil {
		return err
	}
	gates, err := client.Gates(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(gates, func(g ledger.Gate) bool {
		return g.State == ledger.StateEnrolled && (g.Place == c.args[1] || string(g.Device) == c.args[1])
	})
	if i < 0 {
		return hint(fmt.Errorf("no box %q is enrolled", c.args[1]), "`gatectl gate list` has them; `gatectl gate add` enrols a spare ahead")
	}
	entry, err := client.SwapGate(ctx, c.args[0], gates[i].Key)
	if err != nil {
		return err
	}
	return c.out.say(entry, cell{"✓ took over", good}, text(entry.Place), text(string(entry.Device)))
}

// enrolled is a new enrolment.
type enrolled struct {
	ledger.GateEntry
	File string `json:"file"`
}

func (e *enrolling) run(ctx context.Context, c *call) error {
	if e.out == "" {
		return hint(wrongUsage("-out is needed"), "name the enrolment file to write, as in -out %q", strings.ReplaceAll(strings.ToLower(c.args[0]), " ", "-")+".enrolment")
	}
	client, err := c.ledgerFor(reads | writes)
	if err != nil {
		return err
	}
	known, err := client.Enrolment(ctx)
	if err != nil {
		return err
	}
	file, key, err := e.enrolment(c, known)
	if err != nil {
		return err
	}
	if err := writeEnrolment(e.out, file); err != nil {
		return err
	}
	entry, err := e.enrol(ctx, client, c.args[0], key)
	if err != nil {
		return e.undo(c.args[0], err)
	}
	return c.out.say(enrolled{entry, e.out}, cell{"✓ enrolled", good}, text(entry.Place), text(string(entry.Device)), text(e.out))
}

// enrolment makes a device's key and says what its file is to have.
func (e *enrolling) enrolment(c *call, known ledgerhttp.Enrolment) (file config.Enrolment, key string, err error) {
	file = config.Enrolment{
		Place: c.args[0], Brokers: known.Brokers, BrokerKeys: known.BrokerKeys,
		ProgrammeKey: known.ProgrammeKey, Issued: c.env.now().UTC().Truncate(time.Second),
	}
	if e.broker {
		file.Brokers = nonEmpty(known.Leaf)
	}
	if e.brokers != "" {
		file.Brokers, file.BrokerKeys = strings.Split(e.brokers, ","), nil
	}
	if e.pins != "" {
		file.BrokerKeys = strings.Split(e.pins, ",")
	}
	if e.broker && len(file.Brokers) == 0 {
		return file, "", hint(errors.New("the ledger names no address for venues' brokers"), "set nats.leaf in ledgerd's configuration, or give -brokers and -broker-keys")
	}
	file.Seed, key, err = wire.NewDeviceKey()
	return file, key, err
}

// writeEnrolment writes the file before the device is enrolled: a device whose
// key was lost would hold its place. What a gate would refuse is not left there.
func writeEnrolment(path string, file config.Enrolment) error {
	if err := config.WriteEnrolment(path, file); err != nil {
		return keepFile(err)
	}
	if _, err := config.LoadEnrolment(path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// undo takes the file back where the ledger said no. Where it said nothing, the
// device may be enrolled, and the file is the only copy of its key.
func (e *enrolling) undo(place string, err error) error {
	var p *ledgerhttp.Problem
	if !errors.As(err, &p) {
		return hint(err, "whether the box was enrolled is not known: if `gatectl gate list` has %q with a new device, %s is good; if not, remove it and try again", place, e.out)
	}
	if errors.Is(err, &ledgerhttp.Problem{Type: "urn:admitone:problem:conflict"}) {
		err = hint(err, "`gatectl gate swap` puts a spare in the place of a box")
	}
	return errors.Join(err, os.Remove(e.out))
}

// change makes the action of a command that changes a device.
func change(done string, do func(*ledgerhttp.Client, context.Context, string) (ledger.GateEntry, error)) action {
	return func(ctx context.Context, c *call) error {
		client, err := c.ledgerFor(writes)
		if err != nil {
			return err
		}
		entry, err := do(client, ctx, c.args[0])
		if err != nil {
			return err
		}
		return c.out.say(entry, cell{done, good}, text(entry.Place), text(string(entry.Device)))
	}
}

func listGates(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(reads)
	if err != nil {
		return err
	}
	stats, err := client.Stats(ctx) // with the ledger's time, which says who is silent
	head := []string{"place", "role", "state", "link", "heard", "mode", "clock", "unsent", "device", "note"}
	return table(c.out, all(stats.Gates, err), "no gates", head, func(g ledger.Gate) []cell {
		state := text(g.State)
		if g.State != ledger.StateEnrolled {
			state = cell{"✗ " + or(g.State, "not enrolled"), bad}
		}
		link, heard, mode, clock := linkCell(g.Link), text(g.Heard), modeCell(g.Mode), clockCell(g.Clock)
		if g.Heard == "" {
			heard, mode, clock = text("-"), text("-"), text("-")
		}
		switch {
		case g.Role == ledger.RoleBroker:
			link = text("-") // it says nothing by itself
		case isSilent(g.Heard, stats.Time):
			link = cell{"✗ not heard", amber}
		}
		return []cell{
			text(g.Place), text(g.Role), state, link, heard, mode, clock,
			text(fmt.Sprint(g.Outstanding)), text(string(g.Device)), text(g.Note),
		}
	})
}

// isSilent reports whether a gate, which says something every 2 s, was not heard
// in the last 10 s, by the ledger's times.
func isSilent(heard, now string) bool {
	h, err := time.Parse(ticket.TimeFormat, heard)
	n, err2 := time.Parse(ticket.TimeFormat, now)
	return err != nil || err2 != nil || n.Sub(h) >= 10*time.Second
}

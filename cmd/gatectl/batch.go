package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/ticket"
)

func batchCommands() []command {
	return []command{{
		name: "export", args: "FILE", about: "Write all records of the gate on this machine to a file, for a ledger that it cannot reach",
		min: 1, max: 1, uses: socket, flags: noFlags(exportRecords),
		help: "The file is signed by the device's key. It changes nothing at the gate, which will also\nsend the same records once it has a network: neither is taken twice. FILE must not be\nthere yet.",
	}, {
		name: "import", args: "FILE", about: "Give the ledger the file that a gate exported", min: 1, max: 1, uses: writes, flags: noFlags(importRecords),
		help: "The whole file is looked at before anything is sent. What the ledger has already changes\nnothing, so that a file may be imported again, or after a newer one.",
	}}
}

// exportReport is what a file came to.
type exportReport struct {
	Device  ticket.Source `json:"device"`
	Place   string        `json:"place"`
	Parts   int           `json:"parts"`
	Records int           `json:"records"`
	File    string        `json:"file"`
}

func exportRecords(ctx context.Context, c *call) error {
	file := c.args[0]
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s is there already; nothing is overwritten", file)
	}
	var b bytes.Buffer
	if err := control.NewClient(c.socket).Export(ctx, &b); err != nil {
		return c.noGate(err)
	}
	parts, err := ticket.ReadBatches(bytes.NewReader(b.Bytes()))
	if err != nil {
		return fmt.Errorf("what the gate gave cannot be used: %w", err)
	}
	if err := config.WriteNew(file, b.Bytes(), 0o600); err != nil {
		return err
	}
	r := exportReport{Device: parts[0].Device, Place: parts[0].Place, Parts: len(parts), File: file}
	for _, p := range parts {
		r.Records += len(p.Records)
	}
	return c.out.say(r, cell{"✓ exported", good}, text(fmt.Sprintf("%s of %s to %s", count(r.Records, "record"), r.Place, file)))
}

// importReport is what the ledger took.
type importReport struct {
	Device   ticket.Source `json:"device"`
	Place    string        `json:"place"`
	Records  int           `json:"records"`
	New      int           `json:"new"`
	SetAside int           `json:"set_aside"`
}

func importRecords(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(writes)
	if err != nil {
		return err
	}
	f, err := os.Open(c.args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	parts, err := ticket.ReadBatches(f)
	var broken *fs.PathError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		return hint(fmt.Errorf("%s: %w", c.args[0], err), "copy it again, or export it again with `gatectl export`; nothing was sent")
	}
	r := importReport{Device: parts[0].Device, Place: parts[0].Place}
	for _, p := range parts {
		got, err := client.Import(ctx, p.Device, p.Signed)
		if err != nil {
			return hint(fmt.Errorf("part %d of %d: %w", p.Part, len(parts), err), "the parts before it are taken; import the file again once this is mended")
		}
		r.Records, r.New, r.SetAside = r.Records+got.Records, r.New+got.New, r.SetAside+got.SetAside
	}
	line := fmt.Sprintf("%s of %s, %d of them new", count(r.Records, "record"), r.Place, r.New)
	if r.SetAside > 0 {
		line += fmt.Sprintf(", %d not to be read", r.SetAside)
	}
	return c.out.say(r, cell{"✓ imported", good}, text(line))
}

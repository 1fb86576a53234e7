package ledger

import (
	"fmt"

	"admitone/internal/ticket"
)

// Imported is what became of a part of an exported file.
type Imported struct {
	Device   ticket.Source `json:"device"`
	Place    string        `json:"place"` // where the device stood when it exported
	Part     int           `json:"part"`
	Records  int           `json:"records"`
	New      int           `json:"new"`       // of them, not here before
	SetAside int           `json:"set_aside"` // of them, not to be read as what they ought to be
}

// Import takes a part of the file that a device exported, as an upload of it: what is
// here already changes nothing. It returns ErrNotFound for a device that was never
// enrolled here, and ErrInvalid for what is not signed by the device's key.
//
// A device that was replaced, revoked or given up may still have records that nobody
// else has. They are welcome; what it admitted afterwards raises its alarm.
func (w *Within) Import(device ticket.Source, signed []byte) (Imported, error) {
	out, err := w.t.importPart(device, signed)
	return out, wrap("import records", err)
}

func (t *txn) importPart(device ticket.Source, signed []byte) (Imported, error) {
	b, err := t.openPart(device, signed)
	if err != nil {
		return Imported{}, err
	}
	out := Imported{Device: b.Device, Place: b.Place, Part: b.Part, Records: len(b.Records)}
	if len(b.Records) == 0 {
		return out, nil // the end of the file
	}
	s := ticket.Stream{Source: b.Device, Run: b.Run}
	st, err := t.stream(s)
	if err != nil {
		return out, err
	}
	if b.Base > st.row.High {
		err := t.rebase(st, ticket.StreamPos{Source: s.Source, Run: s.Run, Pos: b.Base, Base: b.Base})
		if err != nil {
			return out, err
		}
	}
	for i, raw := range b.Records {
		a := read(s, b.From+uint64(i), raw)
		_, here, err := t.Record(s, a.pos)
		if err != nil {
			return out, err
		}
		if !here && a.pos > st.row.High {
			out.New++
		}
		aside, err := t.merge(a)
		if err != nil {
			return out, err
		}
		if aside {
			out.SetAside++
		}
	}
	t.say(func() {
		t.l.log.Info("records imported", "device", b.Device, "place", b.Place, "part", b.Part, "records", out.Records, "new", out.New)
	})
	return out, t.flush()
}

// openPart checks whose a part is.
func (t *txn) openPart(device ticket.Source, signed []byte) (b ticket.Batch, err error) {
	g, err := t.gateAt(string(device))
	if err != nil {
		return b, fmt.Errorf("no device %q was ever enrolled here: %w", device, ErrNotFound)
	}
	if t.l.opt.DeviceKey == nil {
		return b, fmt.Errorf("no way to read device keys is configured: %w", ErrInvalid)
	}
	key, err := t.l.opt.DeviceKey(g.Key)
	if err != nil {
		return b, err
	}
	if b, err = ticket.OpenBatch(signed, key); err != nil {
		return b, fmt.Errorf("these are not records as device %s signed them: %w: %w", g.Device, err, ErrInvalid)
	}
	if b.Device != g.Device {
		return b, fmt.Errorf("device %s signed records of device %s: %w", g.Device, b.Device, ErrInvalid)
	}
	return b, nil
}

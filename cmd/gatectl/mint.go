package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"admitone/internal/config"
	"admitone/internal/qr"
	"admitone/internal/ticket"
)

// maxMint bounds one run; it is more than a venue holds.
const maxMint = 1_000_000

// pngScale is how many pixels a module of a minted picture has: large enough to
// print at 300 dpi, small enough to mail.
const pngScale = 8

// minting is what ticket mint was told.
type minting struct {
	key, event, session, zone, product string
	from, until                        time.Time
	test                               bool
	n                                  int
	pngs, sheet, out                   string
}

func mintFlags(fs *flag.FlagSet) action {
	m := minting{}
	fs.StringVar(&m.key, "key", "", "the private key `FILE` to sign with")
	fs.StringVar(&m.event, "event", "", "the event's `ID`")
	fs.StringVar(&m.session, "session", "", "admit to this session only, an `ID`")
	fs.StringVar(&m.zone, "zone", "", "admit to this `ZONE` only; not with -product")
	fs.StringVar(&m.product, "product", "", "the `PRODUCT` that was sold; not with -zone")
	fs.Func("from", "not valid before this `TIME`, as in 2026-11-30T18:00:00Z", timeInto(&m.from))
	fs.Func("until", "not valid from this `TIME` on", timeInto(&m.until))
	fs.BoolVar(&m.test, "test", false, "make test tickets: they work a gate in mode test, and admit nobody")
	fs.IntVar(&m.n, "n", 1, "how many, a `NUMBER`")
	fs.StringVar(&m.pngs, "png", "", "write a QR code for each into this `DIR`, named by the ticket's id")
	fs.StringVar(&m.sheet, "sheet", "", "write a page of QR codes to print, an HTML `FILE`")
	fs.StringVar(&m.out, "out", "", "write the texts to this `FILE`, one a line")
	return m.run
}

// timeInto reads an RFC 3339 time.
func timeInto(dst *time.Time) func(string) error {
	return func(s string) (err error) {
		if *dst, err = time.Parse(time.RFC3339, s); err != nil {
			return errors.New("no time such as 2026-11-30T18:00:00Z or 2026-11-30T19:00:00+01:00")
		}
		return nil
	}
}

// minted is one ticket that was made.
type minted struct {
	ID    string `json:"id"`
	Token string `json:"token"`
	PNG   string `json:"png,omitempty"`
}

func (m *minting) run(_ context.Context, c *call) error {
	if m.key == "" || m.event == "" {
		return hint(wrongUsage("-key and -event are needed"), "gatectl ticket mint -key FILE -event ID; `gatectl key new FILE` makes a key")
	}
	if m.n < 1 || m.n > maxMint {
		return wrongUsage("-n %d: want 1 to %d", m.n, maxMint)
	}
	priv, err := config.ReadKey(m.key)
	if err != nil {
		return err
	}
	list, err := m.mint(ticket.NewSigner(priv))
	if err != nil {
		return err
	}
	if err := m.write(list); err != nil {
		return err
	}
	return m.print(c.out, list)
}

func (m *minting) mint(s ticket.Signer) ([]minted, error) {
	t := ticket.Ticket{
		Format: ticket.FormatA1, Event: m.event, Session: m.session, Zone: m.zone, Product: m.product,
		NotBefore: m.from, Expires: m.until, Test: m.test,
	}
	list := make([]minted, m.n)
	for i := range list {
		rand.Read(t.ID[:]) // never fails: see crypto/rand
		token, err := s.Mint(t)
		if err != nil {
			return nil, err
		}
		list[i] = minted{ID: t.ID.String(), Token: token}
	}
	return list, nil
}

// write puts the tickets into the files that were asked for, and notes the
// pictures' names. Whoever has a file can use its tickets, so they are secrets.
func (m *minting) write(list []minted) error {
	if m.pngs != "" {
		if err := os.MkdirAll(m.pngs, 0o700); err != nil {
			return fmt.Errorf("write pictures: %w", err)
		}
	}
	for i := range list {
		if m.pngs == "" {
			break
		}
		list[i].PNG = filepath.Join(m.pngs, list[i].ID+".png")
		if err := writeNew(list[i].PNG, func(w io.Writer) error { return qr.PNG(w, list[i].Token, pngScale) }); err != nil {
			return err
		}
	}
	if m.sheet != "" {
		items := make([]qr.Item, len(list))
		for i, t := range list {
			items[i] = qr.Item{Text: t.Token, Caption: m.caption(t)}
		}
		if err := writeNew(m.sheet, func(w io.Writer) error { return qr.Sheet(w, items) }); err != nil {
			return err
		}
	}
	if m.out == "" {
		return nil
	}
	return writeNew(m.out, func(w io.Writer) error {
		var b strings.Builder
		for _, t := range list {
			b.WriteString(t.Token + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// caption is what a person reads below a symbol of the sheet.
func (m *minting) caption(t minted) string {
	lines := []string{strings.Join(nonEmpty(m.event, m.session, m.zone, m.product), " · ")}
	if !m.from.IsZero() {
		lines = append(lines, "from "+when(m.from))
	}
	if !m.until.IsZero() {
		lines = append(lines, "until "+when(m.until))
	}
	if m.test {
		lines = append(lines, "TEST TICKET: admits nobody")
	}
	return strings.Join(append(lines, t.ID), "\n")
}

func nonEmpty(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// when gives a time for people, "" for none.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func (m *minting) print(o *output, list []minted) error {
	files := nonEmpty(m.pngs, m.sheet, m.out)
	for _, t := range list {
		switch {
		case o.json:
			if err := o.object(t); err != nil {
				return err
			}
		case len(files) == 0:
			fmt.Fprintln(o.raw(), t.Token)
		}
	}
	if !o.json && len(files) > 0 {
		o.line([]cell{text(count(len(list), "ticket") + " in " + strings.Join(files, ", "))}, nil)
	}
	return nil
}

// count gives a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// writeNew writes a file that must not be there yet, for its owner only. What
// fails leaves no file.
func writeNew(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return keepFile(fmt.Errorf("write file: %w", err))
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write file %s: %w", path, err), os.Remove(path))
	}
	return nil
}

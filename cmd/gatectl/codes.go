package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// shownLines is how many bad lines are told to people; programs get all.
const shownLines = 20

// importing is what ticket import was told.
type importing struct{ event, programme, keyFile string }

func importFlags(fs *flag.FlagSet) action {
	m := importing{}
	fs.StringVar(&m.event, "event", "", "the event's `ID`")
	fs.StringVar(&m.programme, "programme", "", "the programme `FILE` that was pushed: it has the event's code_key")
	fs.StringVar(&m.keyFile, "code-key", "", "or a `FILE` with the event's code_key, 64 hex digits")
	return m.run
}

// imported is what an import came to.
type imported struct {
	Event      string    `json:"event"`
	Codes      int       `json:"codes"` // on the list, each once
	Duplicates int       `json:"duplicates"`
	Bad        []badLine `json:"bad"`
	Version    uint64    `json:"version"` // of the list, at the ledger
}

// badLine is a line that is no code. The text is not repeated: it may be most of
// a code that works.
type badLine struct {
	Line int    `json:"line"` // from 1
	Why  string `json:"why"`
}

func (m *importing) run(ctx context.Context, c *call) error {
	if m.event == "" || (m.programme == "") == (m.keyFile == "") {
		return hint(wrongUsage("-event is needed, and one of -programme and -code-key"), "gatectl ticket import -event ID -programme FILE CODES")
	}
	key, err := m.key()
	if err != nil {
		return err
	}
	client, err := c.ledgerFor(writes)
	if err != nil {
		return err
	}
	in := c.env.stdin
	if c.args[0] != "-" {
		f, err := os.Open(c.args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	hashes, r, err := readCodes(in, key)
	if err != nil {
		return fmt.Errorf("read codes: %w", err)
	}
	r.Event = m.event
	if r.Codes == 0 || r.Codes > ledger.MaxCodes {
		r.tellBad(c.env.stderr)
		return fmt.Errorf("%s has %s; a list has 1 to %d, and nothing was changed", c.args[0], count(r.Codes, "code"), ledger.MaxCodes)
	}
	pushed, err := client.PutCodes(ctx, m.event, hashes)
	if err != nil {
		return err
	}
	r.Version = pushed.Version
	return c.reportImport(r)
}

// key gives the event's code key.
func (m *importing) key() ([]byte, error) {
	digits := ""
	if m.keyFile != "" {
		b, err := os.ReadFile(m.keyFile)
		if err != nil {
			return nil, err
		}
		digits = strings.TrimSpace(string(b))
	} else {
		p, err := readProgramme(m.programme)
		if err != nil {
			return nil, err
		}
		e, ok := p.Event(m.event)
		if !ok || !slices.Contains(e.Formats, ticket.FormatCode.String()) {
			return nil, hint(fmt.Errorf("%s has no event %q with the format code", m.programme, m.event),
				"give it formats = [\"code\"] and a code_key of 64 hex digits, as `openssl rand -hex 32` makes, and push it first")
		}
		digits = e.CodeKey
	}
	key, err := hex.DecodeString(digits)
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("read code key %s: want 64 hex digits", m.keyFile)
	}
	return key, nil
}

// readCodes hashes a list of codes, one a line, ended by LF or CRLF. Empty lines
// say nothing, nor does the mark that some programs begin a file with.
func readCodes(in io.Reader, key []byte) ([]ticket.ID, imported, error) {
	r := imported{Bad: []badLine{}}
	var hashes []ticket.ID
	seen := map[ticket.ID]bool{}
	lines := bufio.NewReaderSize(in, 4096) // far above ticket.MaxCode
	for n := 1; ; n++ {
		line, err := nextLine(lines)
		if errors.Is(err, io.EOF) {
			return hashes, r, nil
		}
		if err != nil && !errors.Is(err, errLong) {
			return nil, r, err
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		switch code := string(line); {
		case err != nil:
			r.Bad = append(r.Bad, badLine{n, err.Error()})
		case code == "":
		case ticket.CheckCode(code) != nil:
			r.Bad = append(r.Bad, badLine{n, "no code: want 1 to 512 bytes of UTF-8 without control characters"})
		default:
			if id := ticket.CodeHash(key, code); seen[id] {
				r.Duplicates++
			} else {
				seen[id] = true
				hashes = append(hashes, id)
				r.Codes++
			}
		}
	}
}

var errLong = fmt.Errorf("longer than %d bytes", ticket.MaxCode)

// nextLine gives a line without its end, or errLong for one that no code has;
// its rest is passed over.
func nextLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	switch {
	case long && (err == nil || errors.Is(err, io.EOF)):
		return nil, errLong
	case errors.Is(err, io.EOF) && len(line) > 0: // the last line has no end
	case err != nil:
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

func (c *call) reportImport(r imported) error {
	line := fmt.Sprintf("%s for %s pushed as version %d", count(r.Codes, "code"), r.Event, r.Version)
	if r.Duplicates > 0 {
		line += ", " + count(r.Duplicates, "duplicate") + " left out"
	}
	if len(r.Bad) > 0 {
		line += ", " + count(len(r.Bad), "bad line") + " left out"
	}
	if err := c.out.say(r, text(line)); err != nil {
		return err
	}
	if len(r.Bad) == 0 {
		return nil
	}
	r.tellBad(c.env.stderr)
	return errTold
}

// tellBad tells people which lines were no codes.
func (r imported) tellBad(w io.Writer) {
	for i, b := range r.Bad {
		if i == shownLines {
			note(w, fmt.Sprintf("and %s more: -json lists all", count(len(r.Bad)-i, "bad line")))
			return
		}
		note(w, fmt.Sprintf("line %d: %s", b.Line, b.Why))
	}
}

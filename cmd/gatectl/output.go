package main

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// All that commands print goes through output. The rules are:
//
//   - The result goes to standard output; everything else goes to standard error
//     with "gatectl:" before it (note).
//   - With -json every line is one JSON object: one for a result, one for each
//     entry of a list. Without it the result is for people, and may change.
//   - Whatever a line prints is escaped. Nothing from outside can move the
//     cursor, forge a line or turn the direction of writing.
//   - A colour only repeats what a word and a symbol say. There are none outside
//     of a terminal, and none where NO_COLOR is set (https://no-color.org) or
//     TERM is dumb.
type output struct {
	w      *bufio.Writer
	json   bool
	colour bool
}

func newOutput(env environment, asJSON bool) *output {
	return &output{
		w: bufio.NewWriter(env.stdout), json: asJSON,
		colour: env.terminal && env.getenv("NO_COLOR") == "" && env.getenv("TERM") != "dumb",
	}
}

// tone is a cell's colour, as parameters of SGR (ECMA-48, 8.3.117).
type tone string

const (
	plain  tone = ""
	bad    tone = "31" // red
	good   tone = "32" // green
	amber  tone = "33"
	strong tone = "1"
	faint  tone = "2"
)

// cell is one text of a line.
type cell struct {
	text string
	tone tone
}

// text makes a cell without a colour.
func text(s string) cell { return cell{text: s} }

// or gives a stand-in for an empty text, so that columns stay readable.
func or(s, empty string) string {
	if s == "" {
		return empty
	}
	return s
}

// say prints one result: v with -json, otherwise a line of cells.
func (o *output) say(v any, line ...cell) error {
	if o.json {
		return o.object(v)
	}
	o.line(line, nil)
	return nil
}

// field is a named value of one result.
type field struct {
	name  string
	value cell
}

// fields prints one result as its names and values, one a line.
func (o *output) fields(v any, fs ...field) error {
	if o.json {
		return o.object(v)
	}
	rows := make([][]cell, len(fs))
	for i, f := range fs {
		rows[i] = []cell{{f.name, faint}, f.value}
	}
	o.columns(rows)
	return nil
}

// table prints a list: each entry as v gives it with -json, otherwise a row under
// a head; none is what it says of an empty list. It ends with the first error,
// after the rows that came before it.
func table[T any](o *output, list iter.Seq2[T, error], none string, head []string, row func(T) []cell) error {
	rows := [][]cell{{}}
	for _, h := range head {
		rows[0] = append(rows[0], cell{h, faint})
	}
	var failed error
	for v, err := range list {
		if failed = err; err != nil {
			break
		}
		if !o.json {
			rows = append(rows, row(v))
		} else if err := o.object(v); err != nil {
			return err
		}
	}
	switch {
	case o.json:
	case len(rows) > 1:
		o.columns(rows)
	case failed == nil:
		o.line([]cell{text(none)}, nil)
	}
	return failed
}

// all gives a slice as a list for table; an error comes instead of it.
func all[T any](list []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// raw prints what must arrive unchanged, and comes from nobody else or is asked
// for as it is: ticket texts minted here, and the export of the ledger.
func (o *output) raw() io.Writer { return o.w }

// object prints a line of JSON.
func (o *output) object(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	o.w.WriteString(escapeJSON(b.String()))
	return nil
}

// columns prints rows with each column as wide as its widest cell.
func (o *output) columns(rows [][]cell) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(escape(c.text)))
		}
	}
	for _, r := range rows {
		o.line(r, widths)
	}
}

// line prints cells with two spaces between them, padded to the widths but for
// the last one. No line ends in spaces.
func (o *output) line(cells []cell, widths []int) {
	for len(cells) > 0 && cells[len(cells)-1].text == "" {
		cells = cells[:len(cells)-1]
	}
	for i, c := range cells {
		s := escape(c.text)
		if o.colour && c.tone != plain && s != "" {
			o.w.WriteString("\x1b[" + string(c.tone) + "m" + s + "\x1b[0m")
		} else {
			o.w.WriteString(s)
		}
		if i == len(cells)-1 {
			break
		}
		pad := 0
		if i < len(widths) {
			pad = widths[i] - utf8.RuneCountInString(s)
		}
		o.w.WriteString(strings.Repeat(" ", pad+2))
	}
	o.w.WriteByte('\n')
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"admitone/internal/audit"
)

func auditCommands() []command {
	return []command{{
		name: "audit list", alone: true, about: "List the admin writes, oldest first", uses: reads, flags: noFlags(auditList),
		help: "`gatectl audit` is the same. With -json the lines are what `gatectl audit verify FILE`\ntakes.",
	}, {
		name: "audit verify", args: "[FILE]", about: "Say whether the log of admin writes is whole", max: 1, uses: reads, flags: verifyFlags,
		help: "Each line is hashed onto the one before it: the first one that does not fit is named,\nand the exit code is 1. FILE is an export, one JSON object a line (- is standard input);\nwithout it the ledger is asked. Lines cut off at the end show only against a head that\nwas kept from before: -head FILE holds the log against the head in FILE, if it is there,\nand then keeps the new one in it. Keep it where the ledger's administrators cannot write.",
	}}
}

func auditList(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(reads)
	if err != nil {
		return err
	}
	head := []string{"line", "time", "by", "request", "outcome", "body sha256"}
	return table(c.out, client.AllAudit(ctx), "no admin writes", head, auditRow)
}

func auditRow(l audit.Line) []cell {
	outcome := cell{"✓ done", good}
	if l.Problem != "" {
		outcome = cell{fmt.Sprintf("✗ %d %s", l.Status, l.Problem), bad}
	}
	return []cell{
		text(strconv.FormatUint(l.N, 10)), text(l.Time), text(l.By), text(l.Method + " " + l.Path), outcome, text(l.Digest[:min(16, len(l.Digest))]),
	}
}

// verified is what a whole log comes to.
type verified struct {
	Lines uint64 `json:"lines"`
	Head  string `json:"head"`
}

func verifyFlags(fs *flag.FlagSet) action {
	file := fs.String("head", "", "hold the log against the head in this `FILE`, and keep the new one there")
	return func(ctx context.Context, c *call) error {
		kept, err := keptHead(*file)
		if err != nil {
			return err
		}
		lines, end, err := c.auditLines(ctx)
		if err != nil {
			return err
		}
		head, err := verifyLines(lines, kept)
		if err = errors.Join(err, end()); err != nil {
			return err
		}
		if *file != "" {
			if err := keepHead(*file, head); err != nil {
				return err
			}
		}
		return c.out.say(verified{head.N, head.String()}, cell{"✓ whole", good}, text(fmt.Sprintf("%d lines", head.N)), text("head "+head.String()))
	}
}

func verifyLines(lines iter.Seq2[audit.Line, error], kept audit.Head) (audit.Head, error) {
	v := audit.NewVerifier(kept)
	for l, err := range lines {
		if err == nil {
			err = v.Next(l)
		}
		if err != nil {
			return audit.Head{}, err
		}
	}
	return v.End()
}

// auditLines gives the log from the file that was named, or from the ledger.
func (c *call) auditLines(ctx context.Context) (lines iter.Seq2[audit.Line, error], end func() error, err error) {
	nothing := func() error { return nil }
	if len(c.args) == 0 {
		client, err := c.ledgerFor(reads)
		if err != nil {
			return nil, nil, err
		}
		return client.AllAudit(ctx), nothing, nil
	}
	if c.args[0] == "-" {
		return exported(c.env.stdin), nothing, nil
	}
	f, err := os.Open(c.args[0])
	if err != nil {
		return nil, nil, err
	}
	return exported(f), f.Close, nil
}

// exported reads lines of JSON.
func exported(r io.Reader) iter.Seq2[audit.Line, error] {
	return func(yield func(audit.Line, error) bool) {
		const longest = 1 << 20
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, longest)
		for n := 1; sc.Scan(); n++ {
			var l audit.Line
			err := json.Unmarshal(sc.Bytes(), &l)
			if err != nil {
				err = &audit.BrokenError{N: uint64(n), Why: "it is no JSON of an audit log: " + err.Error()}
			}
			if !yield(l, err) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			yield(audit.Line{}, fmt.Errorf("read export: %w", err))
		}
	}
}

// keptHead reads the head that was kept in a file; none where there is no file.
func keptHead(file string) (audit.Head, error) {
	if file == "" {
		return audit.Head{}, nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return audit.Head{}, nil
	}
	if err != nil {
		return audit.Head{}, err
	}
	return audit.ParseHead(strings.TrimSpace(string(b)))
}

// keepHead replaces the file at once: half a head would be none.
func keepHead(file string, h audit.Head) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".head-*")
	if err != nil {
		return fmt.Errorf("keep head: %w", err)
	}
	_, err = fmt.Fprintln(f, h)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("keep head: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

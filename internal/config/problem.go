package config

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Problem is one thing wrong with a configuration file.
type Problem struct {
	File  string // as it was named
	Key   string // the key's path, as in lane[0].passage_timeout; "" where it is the file itself
	Wrong string // what is wrong
	Right string // what would be right
}

// String gives one line: FILE: KEY: WRONG; RIGHT.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.Wrong)
	if p.Right != "" {
		b.WriteString("; " + p.Right)
	}
	return b.String()
}

// Problems is all that is wrong; an error of every Load is of this type.
type Problems []Problem

// Error gives one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Report prints what -check-config prints for the outcome of a Load, every
// problem on its own line, and gives the exit code: 0 or 1. A file without
// problems gets one line that says so.
func Report(w io.Writer, file string, err error) int {
	if err == nil {
		fmt.Fprintf(w, "%s: ok\n", file)
		return 0
	}
	fmt.Fprintln(w, err)
	var ps Problems
	if errors.As(err, &ps) && len(ps) > 1 {
		fmt.Fprintf(w, "%d problems\n", len(ps))
	}
	return 1
}

// report collects the problems of one file. A key has at most one: what follows
// from a value that could not be read at all is no news.
type report struct {
	file   string
	dir    string // what relative paths are relative to
	unread bool   // the file could not be read at all: nothing else can be said of it
	json   bool   // times stand as strings
	list   Problems
	seen   map[string]bool
}

func (r *report) add(key, wrong, right string) {
	if r.seen[key] && key != "" {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key] = true
	r.list = append(r.list, Problem{File: r.file, Key: key, Wrong: wrong, Right: right})
}

func (r *report) addf(key, right, wrong string, args ...any) {
	r.add(key, fmt.Sprintf(wrong, args...), right)
}

// err gives the problems, or nil where there are none.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	return r.list
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errTold is returned when what went wrong is in the output already.
var errTold = errors.New("told already")

// hinted is an error with what to do about it.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// hint adds what to do to an error.
func hint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// usage is a command line that cannot be understood.
type usage struct{ err error }

func (u *usage) Error() string { return u.err.Error() }
func (u *usage) Unwrap() error { return u.err }

// wrongUsage makes an error of a wrong command line.
func wrongUsage(format string, args ...any) error { return &usage{fmt.Errorf(format, args...)} }

// tell writes an error to standard error, and gives the exit code.
func tell(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	code := exitFailed
	var u *usage
	if errors.As(err, &u) {
		code = exitUsage
	}
	if errors.Is(err, errTold) {
		return code
	}
	note(w, err.Error())
	var h *hinted
	if errors.As(err, &h) {
		note(w, "hint: "+h.hint)
	}
	return code
}

// note writes something besides the result to standard error, each line escaped.
func note(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, "gatectl: "+escape(strings.TrimSuffix(line, "\n")))
	}
}

package main

import (
	"errors"
	"strings"
	"testing"

	"admitone/internal/ledgerhttp"
)

// TestAgain: only an error that leaves open what happened comes with the key to find
// it out by.
func TestAgain(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("connection refused"): true, &ledgerhttp.Problem{Status: 503}: true, &ledgerhttp.Problem{Status: 422}: false,
		&ledgerhttp.Problem{Status: 409, Type: "urn:admitone:problem:conflict"}: false, &ledgerhttp.Problem{Status: 409, Type: "urn:admitone:problem:in-progress"}: true,
	} {
		var h *hinted
		if got := errors.As(again(err, "KEY"), &h); got != want || got && !strings.Contains(h.hint, "-idempotency-key KEY") {
			t.Errorf("%v: hint %t, want %t", err, got, want)
		}
	}
}

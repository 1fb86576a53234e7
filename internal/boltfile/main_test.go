package boltfile

import (
	"fmt"
	"os"
	"testing"
)

// TestMain lets this test program be its own child: with a verb as its first
// argument it does that instead of running tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		if verb, ok := verbs()[os.Args[1]]; ok {
			if err := verb(os.Args[2]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// verbs are what a child of the tests can do with the path it is given.
func verbs() map[string]func(path string) error {
	return map[string]func(string) error{
		"child-verify": Verify,
		"child-hang":   func(string) error { select {} },
	}
}

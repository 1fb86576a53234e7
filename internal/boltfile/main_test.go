package boltfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
)

// TestMain lets this test program be its own child: with a verb as its first
// argument it does that instead of running tests.
func TestMain(m *testing.M) {
	if len(os.Args) >= 3 {
		if verb, ok := verbs()[os.Args[1]]; ok {
			if err := verb(os.Args[len(os.Args)-1], os.Args[2:len(os.Args)-1]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	// A program with the race detector takes a second to exit; there are many children.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// verbs are what a child of the tests can do with the path it is given last.
func verbs() map[string]func(path string, args []string) error {
	return map[string]func(string, []string) error{
		"child-verify":  func(path string, _ []string) error { return Verify(path) },
		"child-hang":    func(string, []string) error { <-time.After(time.Hour); return nil },
		"child-spin":    childSpin,
		"child-hold":    childHold,
		"child-commits": childCommits,
		"child-idle":    childIdle,
		"child-callers": childCallers,
	}
}

// childHold has the file open until its standard input ends.
func childHold(path string, _ []string) error {
	f, err := Open(context.Background(), path, options())
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, f.Close())
}

// childCommits makes so many commits of a row each, on one thread, for which strace
// counts, and says what became of each. The last lines are about reading.
func childCommits(path string, args []string) error {
	runtime.LockOSThread()
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	f, err := Open(context.Background(), path, options())
	if err != nil {
		return err
	}
	fmt.Println("open")
	for i := range n {
		err := f.Update(context.Background(), func(tx kv.Tx) error {
			return tx.Put("rows", rowKey(i), rowValue(i))
		})
		fmt.Println(outcome(err), i)
	}
	fmt.Println("view", outcome(f.View(func(kv.Tx) error { return nil })))
	return f.Close()
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, kv.ErrUnknown):
		return "unknown"
	case errors.Is(err, kv.ErrFull):
		return "full"
	}
	return err.Error()
}

// childIdle runs so many functions that write nothing, or nothing new.
func childIdle(path string, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	f, err := Open(context.Background(), path, options())
	if err != nil {
		return err
	}
	row := func(tx kv.Tx) error { return tx.Put("rows", rowKey(0), rowValue(0)) }
	if err := f.Update(context.Background(), row); err != nil {
		return err
	}
	for range n {
		spoil := func(tx kv.Tx) error { return errors.Join(tx.Put("rows", rowKey(1), rowValue(1)), io.EOF) }
		gone := func(tx kv.Tx) error { return tx.Delete("rows", rowKey(9)) }
		if err := f.Update(context.Background(), spoil); !errors.Is(err, io.EOF) {
			return err
		}
		if err := errors.Join(f.Update(context.Background(), row), f.Update(context.Background(), gone)); err != nil {
			return err
		}
	}
	return f.Close()
}

// childCallers has 64 callers write so many rows each.
func childCallers(path string, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	f, err := Open(context.Background(), path, options())
	if err != nil {
		return err
	}
	errs := make([]error, 64)
	var wg sync.WaitGroup
	for c := range errs {
		wg.Go(func() {
			for i := range n {
				errs[c] = errors.Join(errs[c], f.Update(context.Background(), func(tx kv.Tx) error {
					return tx.Put("rows", rowKey(c*n+i), rowValue(i))
				}))
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), f.Close())
}

package reader

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const childFlag = "READER_TEST_CHILD"

// TestMain is the child of TestStandardInput where it is told to: it prints the
// looks of its standard input and ends at "quit".
func TestMain(m *testing.M) {
	if os.Getenv(childFlag) == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err := NewLine(LineOptions{Path: "-"})
	if err == nil {
		err = l.Run(ctx, func(look Look) {
			fmt.Println(look.Text)
			if look.Text == "quit" { // in a while, when it reads again
				time.AfterFunc(100*time.Millisecond, cancel)
			}
		})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ended")
	os.Exit(0)
}

func TestStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "codes")
	if err := os.WriteFile(file, []byte("one\ntwo\nquit"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, stdin := range map[string]func() (child, mine *os.File){
		"file": func() (*os.File, *os.File) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			return f, nil
		},
		"pipe": func() (*os.File, *os.File) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return r, w
		},
		"socket": func() (*os.File, *os.File) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(fds[0]), "child's"), os.NewFile(uintptr(fds[1]), "mine")
		},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, mine := stdin()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0])
			child.Env = append(os.Environ(), childFlag+"=1", "GORACE=atexit_sleep_ms=0")
			child.Stdin = theirs
			if mine != nil { // stays open: the child ends by itself, not at the end of its input
				defer mine.Close()
				if _, err := mine.WriteString("one\ntwo\nquit\n"); err != nil {
					t.Fatal(err)
				}
			}
			out, err := child.CombinedOutput()
			if err != nil || string(out) != "one\ntwo\nquit\nended\n" {
				t.Errorf("%v: %s", err, out)
			}
			if err := theirs.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

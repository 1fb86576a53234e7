// Gatectl is the operators' command: it makes keys and tickets, tells the ledger
// what is on, enrols gates, looks after conflicts and claims, and works a gate
// through its socket.
//
//	gatectl help            every command
//	gatectl help COMMAND    one command with its flags
//
// The exit code is 0 where all was done, 1 where something was not, and 2 for a
// wrong command line.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something that was asked for was not done
	exitUsage  = 2 // the command line is wrong; nothing was done
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends at once
	}()
	os.Exit(run(ctx, os.Args[1:], environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: time.Now,
		terminal: terminal(os.Stdout),
	}))
}

// environment is what a command has from its process, so that a test can start it.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	terminal       bool // stdout is one
}

// terminal reports whether a file is a device that shows characters.
func terminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// run does one command and gives the exit code.
func run(ctx context.Context, args []string, env environment) int {
	g := globals{
		ledger: env.getenv("ADMITONE_LEDGER"), keyFile: env.getenv("ADMITONE_KEY"), sign: env.getenv("ADMITONE_SIGN"),
		socket: defaultSocket,
	}
	return tell(env.stderr, dispatch(ctx, args, g, env))
}

//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/internal/hil/talk"
)

// ask does what a request asks for on this machine.
func ask(t *testing.T, s *server, q talk.Request) (talk.Reply, error) {
	t.Helper()
	q.Wait = 10 * time.Second
	return s.do(q)
}

func must1(t *testing.T, s *server, q talk.Request) talk.Reply {
	t.Helper()
	p, err := ask(t, s, q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrograms(t *testing.T) {
	s := &server{out: io.Discard, started: map[int]*started{}}
	log := filepath.Join(t.TempDir(), "log")
	if p := must1(t, s, talk.Request{Op: talk.Run, Argv: []string{"/bin/sh", "-c", "echo out; exit 3"}}); p.Code != 3 || string(p.Data) != "out\n" {
		t.Errorf("a program that prints and exits with 3: %+v", p)
	}
	pid := must1(t, s, talk.Request{Op: talk.Start, Argv: []string{"/bin/sh", "-c", "echo first line; echo second; exec sleep 60"}, Path: log}).PID
	p := must1(t, s, talk.Request{Op: talk.Await, Path: log, Words: []string{"first", "line"}})
	if p.Line != "first line" {
		t.Errorf("awaited line: %+v", p)
	}
	if p = must1(t, s, talk.Request{Op: talk.Await, Path: log, Offset: p.Offset}); p.Line != "second" {
		t.Errorf("the line after it: %+v", p)
	}
	found := false
	for _, p := range must1(t, s, talk.Request{Op: talk.List}).Processes {
		found = found || p.PID == pid && p.Parent == os.Getpid() && p.Files > 0 && p.RSS > 0
	}
	if !found {
		t.Errorf("process %d is not listed", pid)
	}
	must1(t, s, talk.Request{Op: talk.Signal, PIDs: []int{pid}, Number: 9})
	if p := must1(t, s, talk.Request{Op: talk.Exit, PID: pid}); p.Code != -9 {
		t.Errorf("a killed program: %+v", p)
	}
}

func TestRepliesAreLines(t *testing.T) {
	in, host := io.Pipe()
	out := &strings.Builder{}
	ended := make(chan error, 1)
	go func() { ended <- serve(in, out) }()
	_, _ = io.WriteString(host, "{\"id\":7,\"op\":\"list\"}\nnonsense\n")
	host.Close()
	if err := <-ended; err == nil {
		t.Error("it serves on without a host")
	}
	if !strings.HasPrefix(out.String(), "\n"+talk.Mark+`{"id":0`) || !strings.Contains(out.String(), "\n"+talk.Mark+`{"id":-1,"error":`) {
		t.Errorf("it says %q", out)
	}
}

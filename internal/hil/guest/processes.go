//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"admitone/internal/hil/talk"
)

// processes lists those that are no kernel threads. One that ends meanwhile is
// left out.
func processes() ([]talk.Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []talk.Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := process(pid); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

func process(pid int) (talk.Process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return talk.Process{}, false
	}
	cmd, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	// The name in brackets may hold anything; what follows it has fixed places:
	// state, parent …, and the resident pages as the 22nd.
	after := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+1:])
	if err != nil || len(cmd) == 0 && after[0] != "Z" || len(after) < 22 {
		return talk.Process{}, false
	}
	p := talk.Process{PID: pid, State: after[0], Argv: strings.Split(strings.TrimSuffix(string(cmd), "\x00"), "\x00")}
	p.Parent, _ = strconv.Atoi(after[1])
	pages, _ := strconv.ParseInt(after[21], 10, 64)
	p.RSS = pages * int64(os.Getpagesize())
	if files, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		p.Files = len(files)
	}
	return p, true
}

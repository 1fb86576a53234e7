// Check opens states that a power cut could have left, as the daemons do, and says
// of each what is wrong with it. Package crashtest starts it.
//
//	check RECORDING STATES FOLDER
//
// It reads numbers of states, ascending, a line each, and answers with a line of
// JSON each. A state can end it or keep it busy for ever: its reader must expect
// that.
package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"admitone/internal/boltfile"
	"admitone/internal/crashtest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: check RECORDING STATES FOLDER")
	}
	rec, err := crashtest.Load(args[0])
	if err != nil {
		return err
	}
	states, err := load(args[1])
	if err != nil {
		return err
	}
	replay, out := crashtest.NewReplay(rec), json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		i, err := strconv.Atoi(in.Text())
		if err != nil || i < 0 || i >= len(states) {
			return fmt.Errorf("no state %q", in.Text())
		}
		s := states[i]
		dir := filepath.Join(args[2], "state")
		if err := replay.Volume(s).Store("data", dir); err != nil {
			return err
		}
		found := crashtest.Finding{State: i}
		if err := look(rec, s.Cut, dir); err != nil {
			found.Problem = err.Error()
		}
		if err := out.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func load(path string) (states []crashtest.State, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return states, gob.NewDecoder(f).Decode(&states)
}

// look opens the store in a folder and asks it for all that had been announced. It
// checks the file itself first, which the daemons leave to a child: this is one.
func look(rec crashtest.Recording, cut int, dir string) error {
	said := crashtest.Announced(rec, cut)
	verify := func(_ context.Context, path string) error { return boltfile.Verify(path) }
	if rec.Device == "" {
		return crashtest.CheckLedger(said, filepath.Join(dir, "ledger.db"), verify)
	}
	return crashtest.CheckGate(rec.Device, said, filepath.Join(dir, "gate.db"), verify)
}

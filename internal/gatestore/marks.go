package gatestore

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"admitone/internal/ticket"
)

// Marks is the list of claims that have fired, in a file on a tmpfs: written
// right before the relay, it outlives the process but not the boot. With it a
// restarted gate can tell a claim that never fired from one that may have.
type Marks struct {
	f      *os.File
	boot   string
	was    map[ticket.ClaimID]bool
	n      int
	recent []string
}

// The file is begun anew when it has grown to marksMost lines, with the last
// marksKept: only claims that are still pending matter, and a gate has no more of
// those than its lanes have credits.
const (
	marksMost = 4096
	marksKept = 256
)

// OpenMarks opens the file, or makes it. Lines of other boots do not count.
func OpenMarks(dir string, boot ticket.BootID) (*Marks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open fired marks: %w", err)
	}
	f, err := openMarks(filepath.Join(dir, "fired"))
	if err != nil {
		return nil, err
	}
	m := &Marks{f: f, boot: hex.EncodeToString(boot[:]), was: map[ticket.ClaimID]bool{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m.n++
		at, text, _ := strings.Cut(lines.Text(), " ")
		if id, err := ticket.ParseClaimID(text); err == nil && at == m.boot {
			m.was[id] = true
		}
	}
	if err := lines.Err(); err != nil {
		f.Close()
		return nil, fmt.Errorf("read fired marks: %w", err)
	}
	return m, nil
}

// Fired reports whether the claim was marked in this boot before OpenMarks.
func (m *Marks) Fired(id ticket.ClaimID) bool { return m.was[id] }

// Mark notes that the claim is about to fire. It must return nil before the
// relay moves.
func (m *Marks) Mark(id ticket.ClaimID) error {
	if m.n >= marksMost {
		if err := m.renew(); err != nil {
			return err
		}
	}
	line := m.boot + " " + id.String() + "\n"
	if _, err := m.f.WriteString(line); err != nil {
		return fmt.Errorf("mark fired: %w", err)
	}
	m.n++
	if m.recent = append(m.recent, line); len(m.recent) > 2*marksKept {
		m.recent = slices.Clone(m.recent[marksKept:])
	}
	return nil
}

// renew puts a short file in the place of the long one, in one step.
func (m *Marks) renew() error {
	keep := m.recent[max(0, len(m.recent)-marksKept):]
	path := m.f.Name()
	if err := os.WriteFile(path+".new", []byte(strings.Join(keep, "")), 0o600); err != nil {
		return fmt.Errorf("renew fired marks: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("renew fired marks: %w", err)
	}
	f, err := openMarks(path)
	if err != nil {
		return err
	}
	m.f.Close()
	m.f, m.n = f, len(keep)
	return nil
}

func openMarks(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open fired marks: %w", err)
	}
	return f, nil
}

// Close closes the file and leaves it.
func (m *Marks) Close() error { return m.f.Close() }

package crashtest

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"os"
	"sync"

	"admitone/internal/ticket"
)

// Kind says what an Event is.
type Kind uint8

// What can happen on a disk, and beside it.
const (
	Write    Kind = iota + 1 // Data at Off of File
	Truncate                 // File has Off bytes now
	Create                   // the name Path now means File, which is new, or has one more name
	Rename                   // the file that Path named, File, is now named To; Path names nothing
	Unlink                   // Path names nothing
	Flush                    // what was done to File before the event Upto is durable now
	FlushDir                 // likewise the names in the folder Path
	Lost                     // what was done to File before the event Upto, and was not flushed, is gone
	Said                     // Note was announced
)

// Event is one thing that happened.
type Event struct {
	Kind     Kind
	File     int // a file's number, whatever its name
	Path, To string
	Off      int64
	Data     []byte
	Upto     int // an index of an earlier event, or of this one
	Note     *Note
}

// Note is what a program told others, as a person, a gate or the ledger had it. One
// of its fields is set.
type Note struct {
	Admit  ticket.ClaimID     // a verdict "admit" by this claim was shown
	Relay  string             // the relay moved for this claim; NoClaim: for none that was marked
	Result *Result            // what became of a claim was written down
	Record []byte             // a record left the program that wrote it, or its receipt did
	Answer *Answer            // the ledger answered an ask
	High   []ticket.StreamPos // somebody was told that these runs are here, up to there
	Revoke ticket.ID          // the ledger said that this ticket is revoked
}

// NoClaim stands for the claim of a relay that moved without one.
const NoClaim = "none"

// Result is a line of results.jsonl.
type Result struct {
	Claim ticket.ClaimID
	State ticket.State
}

// Answer is the ledger's answer to an ask.
type Answer struct {
	Claim  ticket.ClaimID
	Unit   ticket.Unit
	Answer ticket.Answer
}

// Log gathers events in their order.
type Log struct {
	mu     sync.Mutex
	events []Event
}

// Add appends an event and gives its index.
func (l *Log) Add(e Event) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return len(l.events) - 1
}

// Say appends an announcement.
func (l *Log) Say(n Note) { l.Add(Event{Kind: Said, Note: &n}) }

// Next is the index that the next event gets.
func (l *Log) Next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// Reset forgets all events.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = nil
}

// Recording is a log that has ended.
type Recording struct {
	Device ticket.Source // whose store it is; "" for a ledger's
	Events []Event
}

// Recording gives what was gathered so far.
func (l *Log) Recording(device ticket.Source) Recording {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Recording{Device: device, Events: l.events[:len(l.events):len(l.events)]}
}

// Save writes a recording to a file.
func (r Recording) Save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("save recording: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := gob.NewEncoder(w).Encode(r); err != nil {
		f.Close()
		return fmt.Errorf("save recording: %w", err)
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return fmt.Errorf("save recording: %w", err)
	}
	return f.Close()
}

// Load reads what Save wrote.
func Load(path string) (r Recording, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, fmt.Errorf("load recording: %w", err)
	}
	defer f.Close()
	if err := gob.NewDecoder(bufio.NewReaderSize(f, 1<<20)).Decode(&r); err != nil {
		return r, fmt.Errorf("load recording: %w", err)
	}
	return r, nil
}

package turnstile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Kind says what happened.
type Kind uint8

// The kinds of events.
const (
	// PassageIn: a person went in (a debounced edge of the line passage_in).
	PassageIn Kind = iota + 1
	// PassageOut: a person went out (a debounced edge of the line passage_out).
	PassageOut
	// ReadyOn and ReadyOff: the ready input's state, at the start and on each change.
	ReadyOn
	ReadyOff
	// AlarmOn and AlarmOff: the alarm input's state, at the start and on each change.
	AlarmOn
	AlarmOff
	// EmergencyOn and EmergencyOff: the emergency input's state, at the start if it
	// is active and on each change. The relay has been written before.
	EmergencyOn
	EmergencyOff
	// StaffPress: staff pressed their button (a debounced edge of the line staff).
	StaffPress
	// DriverLost: the lines are out of reach, and inactive as far as their keeper
	// could see to that. Err says why. Nothing opens until DriverBack.
	DriverLost
	// DriverBack: the lines are in reach again.
	DriverBack
	// PulseBegin: the relay became active. Opening says for which call.
	PulseBegin
	// PulseEnd: the relay became inactive again, as the driver confirmed.
	PulseEnd
	// PulseDropped: a pulse that waited for its turn will not come. Err says why.
	PulseDropped
	// Fault: a line could not be written. It is told once, until FaultOff. Line
	// and Err say more. The relay is tried again until it is inactive.
	Fault
	// FaultOff: a line that had a fault was written again. A relay that cannot be
	// made active, but inactive, has both each time: opening it is not tried
	// unasked.
	FaultOff
)

var kindNames = [...]string{
	PassageIn: "passage_in", PassageOut: "passage_out",
	ReadyOn: "ready_on", ReadyOff: "ready_off", AlarmOn: "alarm_on", AlarmOff: "alarm_off",
	EmergencyOn: "emergency_on", EmergencyOff: "emergency_off", StaffPress: "staff_press",
	DriverLost: "driver_lost", DriverBack: "driver_back",
	PulseBegin: "pulse_begin", PulseEnd: "pulse_end", PulseDropped: "pulse_dropped",
	Fault: "fault", FaultOff: "fault_off",
}

// String gives the kind's name for logs.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Event is something that happened at the turnstile. At is when it did, with a
// monotonic reading: for an input, its first edge.
type Event struct {
	Kind    Kind
	At      time.Time
	Opening Opening // PulseBegin, PulseEnd, PulseDropped
	Line    Line    // Fault, FaultOff
	Err     error   // PulseDropped, Fault, DriverLost
}

// eventLimit bounds what is kept for a caller that does not read. A person
// needs a second to go through, so it is an hour of passages.
const eventLimit = 4096

// events takes events from any goroutine without ever making it wait, and hands
// them to the caller in order.
type events struct {
	box *mailbox[Event]
	out chan Event
	log *slog.Logger

	mu     sync.Mutex
	failed [lineCount]bool
}

func newEvents(log *slog.Logger) *events {
	return &events{box: newMailbox[Event](), out: make(chan Event), log: log}
}

func (e *events) emit(ev Event) { e.box.put(ev) }

// wrote reports how a write of a line went: the first failure and the first
// success after it are events. A driver that is lost is told once, for all lines.
func (e *events) wrote(line Line, err error) {
	if errors.Is(err, ErrLost) {
		return
	}
	e.mu.Lock()
	was := e.failed[line]
	e.failed[line] = err != nil
	e.mu.Unlock()
	switch {
	case err != nil && !was:
		e.emit(Event{Kind: Fault, At: time.Now(), Line: line, Err: err})
	case err == nil && was:
		e.emit(Event{Kind: FaultOff, At: time.Now(), Line: line})
	}
}

// run hands the events over, one at a time, until ctx ends. A caller that does
// not read loses the oldest ones, never the turnstile's time.
func (e *events) run(ctx context.Context) error {
	var queue []Event
	for {
		var out chan Event
		var first Event
		if len(queue) > 0 {
			out, first = e.out, queue[0]
		}
		select {
		case <-ctx.Done():
			return nil
		case out <- first:
			queue = queue[1:]
		case <-e.box.wake:
			queue = append(queue, e.box.take()...)
			if over := len(queue) - eventLimit; over > 0 {
				e.log.Error("turnstile events dropped: nobody reads them", "count", over)
				queue = queue[over:]
			}
		}
	}
}

// mailbox passes values to one goroutine without making the sender wait.
type mailbox[T any] struct {
	wake chan struct{} // holds one token while there may be something to take

	mu    sync.Mutex
	items []T
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{wake: make(chan struct{}, 1)}
}

func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// waiting is how many values nobody has taken.
func (m *mailbox[T]) waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items)
}

func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}

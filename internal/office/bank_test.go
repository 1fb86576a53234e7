package office_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"admitone/internal/office"
)

// bank is an acquirer: it moves money once for each key, and what it says of it is
// the test's.
type bank struct {
	mu    sync.Mutex
	moved map[string]office.Transfer
	no    map[string]bool // declined
	asked int
	say   func(ctx context.Context, move func() office.Moved) (office.Moved, error)
}

func newBank() *bank {
	b := &bank{moved: map[string]office.Transfer{}, no: map[string]bool{}}
	b.say = atOnce
	return b
}

func atOnce(_ context.Context, move func() office.Moved) (office.Moved, error) { return move(), nil }

// down is where the request surely did nothing.
func down(context.Context, func() office.Moved) (office.Moved, error) {
	return office.Moved{}, fmt.Errorf("%w: connection refused", office.ErrNotMoved)
}

// lost moves the money, and the answer never arrives.
func lost(ctx context.Context, move func() office.Moved) (office.Moved, error) {
	move()
	<-ctx.Done()
	return office.Moved{}, ctx.Err()
}

// late moves the money after a while, whoever still waits for it.
func late(ctx context.Context, move func() office.Moved) (office.Moved, error) {
	out := make(chan office.Moved, 1)
	go func() {
		time.Sleep(30 * time.Second)
		out <- move()
	}()
	select {
	case m := <-out:
		return m, nil
	case <-ctx.Done():
		return office.Moved{}, ctx.Err()
	}
}

// Move is office.Acquirer.Move.
func (b *bank) Move(ctx context.Context, t office.Transfer) (office.Moved, error) {
	b.mu.Lock()
	b.asked++
	say, done := b.say, b.known(t.Key)
	b.mu.Unlock()
	if done {
		say = atOnce // a key that is known gets its answer
	}
	return say(ctx, func() office.Moved { return b.move(t) })
}

func (b *bank) known(key string) bool { _, done := b.moved[key]; return done }

func (b *bank) move(t office.Transfer) office.Moved {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, done := b.moved[t.Key]; done && was != t {
		panic(fmt.Sprintf("one key with two transfers: %+v, %+v", was, t))
	}
	b.moved[t.Key] = t
	if b.no[t.Key] {
		return office.Moved{Declined: "no money"}
	}
	return office.Moved{Reference: "pay_" + t.Key}
}

func (b *bank) behave(say func(context.Context, func() office.Moved) (office.Moved, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say = say
}

func (b *bank) count() (moved, asked int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.moved), b.asked
}

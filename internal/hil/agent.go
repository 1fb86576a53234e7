package hil

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"admitone/internal/hil/talk"
)

// Agent asks the program inside a board to do things.
type Agent struct {
	in io.Writer
	up chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan talk.Reply
	ended   error
	tail    string // the last lines that were no replies
}

func newAgent(in io.Writer, out io.Reader) *Agent {
	a := &Agent{in: in, up: make(chan struct{}), waiting: map[int]chan talk.Reply{}}
	go a.read(out)
	return a
}

func (a *Agent) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if _, object, ok := strings.Cut(line, talk.Mark+"{"); ok {
			a.took("{" + object)
		} else if s := strings.TrimSpace(line); s != "" {
			a.mu.Lock()
			a.tail += s + "\n"
			a.tail = a.tail[max(0, len(a.tail)-2000):]
			a.mu.Unlock()
		}
		if err != nil {
			a.end(err)
			return
		}
	}
}

// took delivers a reply. One that cannot be read belongs to nobody: whoever waits
// for it is told by time.
func (a *Agent) took(object string) {
	var p talk.Reply
	if json.Unmarshal([]byte(object), &p) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.ID == 0 {
		close(a.up)
		return
	}
	if c := a.waiting[p.ID]; c != nil {
		c <- p
		delete(a.waiting, p.ID)
	}
}

func (a *Agent) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = fmt.Errorf("the board's console has ended: %w; its last lines:\n%s", err, a.tail)
	for id, c := range a.waiting {
		close(c)
		delete(a.waiting, id)
	}
}

func (a *Agent) awaitUp(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-a.up:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the board does not come up within %v; its last lines:\n%s", limit, a.lastLines())
		case <-every.C:
			a.mu.Lock()
			err := a.ended
			a.mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
}

func (a *Agent) lastLines() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tail
}

// answerPatience is what a reply may take beyond the request's own wait.
const answerPatience = 30 * time.Second

// Ask sends a request and waits for its reply.
func (a *Agent) Ask(ctx context.Context, q talk.Request) (talk.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Wait+answerPatience)
	defer cancel()
	c := make(chan talk.Reply, 1)
	a.mu.Lock()
	a.last++
	q.ID = a.last
	ended := a.ended
	if ended == nil {
		a.waiting[q.ID] = c
		b, err := json.Marshal(q)
		if err == nil {
			_, err = a.in.Write(append(b, '\n'))
		}
		ended = err
	}
	a.mu.Unlock()
	if ended != nil {
		return talk.Reply{}, fmt.Errorf("ask the board to %s: %w", q.Op, ended)
	}
	select {
	case p, ok := <-c:
		if !ok {
			return talk.Reply{}, fmt.Errorf("ask the board to %s: %w", q.Op, a.why())
		}
		if p.Error != "" {
			return p, fmt.Errorf("%s: %w", q.Op, errors.New(p.Error))
		}
		return p, nil
	case <-ctx.Done():
		return talk.Reply{}, fmt.Errorf("ask the board to %s: no answer: %w", q.Op, ctx.Err())
	}
}

func (a *Agent) why() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// File reads a file of the board.
func (a *Agent) File(ctx context.Context, path string) ([]byte, error) {
	p, err := a.Ask(ctx, talk.Request{Op: talk.Read, Path: path})
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(p.Data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}

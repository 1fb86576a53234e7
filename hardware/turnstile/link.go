package turnstile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// startPatience is how long a keeper has to start and to open the lines: a
	// busy machine needs a second to start a process.
	startPatience = 10 * time.Second

	// endPatience is how long a keeper has to make its lines idle and to end
	// before it is killed. It tries for two seconds.
	endPatience = 5 * time.Second

	// secondThought is how long after its time an answer is still waited for: a
	// parent that was stopped itself finds time over and answers unread.
	secondThought = 200 * time.Millisecond
)

// link is a keeper process as its parent sees it.
type link struct {
	in    io.WriteCloser
	out   frames
	pid   int
	kill  func()
	reap  func() error
	first chan frame // opened or refused

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan frame

	gone chan struct{} // closed when the keeper has ended
	why  error         // then: nil where it ended by itself and well
}

func startKeeper(command []string, stderr io.Writer) (*link, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Args[0] = os.Args[0] // so that a list of processes names the program
	cmd.Stderr, cmd.SysProcAttr = stderr, apart()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &link{
		in: in, out: newFrames(out), pid: cmd.Process.Pid, kill: func() { _ = cmd.Process.Kill() }, reap: cmd.Wait,
		first: make(chan frame, 1), waiting: map[uint64]chan frame{}, gone: make(chan struct{}),
	}, nil
}

// read takes what the keeper tells until it ends, and reaps it.
func (l *link) read(patience time.Duration, changed func(Change), tripped func(error)) {
	err := l.take(changed, tripped)
	// A keeper that ends has said its last word. One that says nonsense is asked
	// to end, for it can still make its lines idle.
	_ = l.in.Close()
	kill := time.AfterFunc(patience, l.kill)
	if ended := l.reap(); ended != nil || errors.Is(err, io.EOF) {
		err = ended
	}
	kill.Stop()
	if l.why = err; err != nil {
		l.why = fmt.Errorf("%w: the keeper ended: %w", ErrLost, err)
	}
	close(l.gone)
}

func (l *link) take(changed func(Change), tripped func(error)) error {
	for {
		fr, err := l.out.next()
		if err != nil {
			return err
		}
		switch fr.Do {
		case verbOpened, verbRefused:
			select {
			case l.first <- fr:
			default:
			}
		case verbAnswer:
			l.mu.Lock()
			reply := l.waiting[fr.ID]
			delete(l.waiting, fr.ID)
			l.mu.Unlock()
			if reply != nil {
				reply <- fr
			}
		case verbChange:
			changed(Change{Line: fr.Line, Active: fr.Active, At: atMonotonic(fr.MonoNS)})
		case verbTripped:
			tripped(errors.New(fr.Err))
		default:
			return fmt.Errorf("the keeper says %q", fr.Do)
		}
	}
}

// open has the keeper open the lines.
func (l *link) open(ctx context.Context, t terms) error {
	if err := l.send(frame{Do: verbOpen, Terms: &t}); err != nil {
		return err
	}
	limit := time.NewTimer(startPatience)
	defer limit.Stop()
	select {
	case fr := <-l.first:
		return refusal(fr)
	case <-l.gone:
	case <-limit.C:
		l.kill()
		return fmt.Errorf("%w: the keeper did not open them within %v", ErrLost, startPatience)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case fr := <-l.first: // why it is gone
		return refusal(fr)
	default:
		return l.ended()
	}
}

func refusal(fr frame) error {
	if fr.Do == verbRefused {
		return errors.New(fr.Err)
	}
	return nil
}

// watch lets the keeper hear that its parent lives, until the keeper ends or does
// not answer, or ctx ends.
func (l *link) watch(ctx context.Context, every, patience time.Duration) error {
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.gone:
			return l.ended()
		case <-beat.C:
			if err := l.call(frame{Do: verbBeat}, patience); err != nil {
				return err
			}
		}
	}
}

// call sends an order and waits for the answer. After patience the keeper is
// killed: it may hang in a driver, and the next one opens the lines idle.
func (l *link) call(fr frame, patience time.Duration) error {
	reply := make(chan frame, 1)
	l.mu.Lock()
	l.last++
	fr.ID = l.last
	l.waiting[fr.ID] = reply
	l.mu.Unlock()
	if err := l.send(fr); err != nil {
		return err
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for late := false; ; late = true {
		select {
		case a := <-reply:
			if a.Err != "" {
				return errors.New(a.Err)
			}
			return nil
		case <-l.gone:
			return l.ended()
		case <-limit.C:
		}
		if late {
			l.kill()
			return fmt.Errorf("%w: the keeper did not answer within %v", ErrLost, patience)
		}
		limit.Reset(secondThought)
	}
}

// send writes one frame. The pipe has room for hundreds, and each caller waits
// for its answer, so that it never fills.
func (l *link) send(fr frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := writeFrame(l.in, fr); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// end asks the keeper to make its lines idle and to end, and waits for that.
func (l *link) end() error {
	_ = l.in.Close() // closed twice where the keeper has ended by itself
	limit := time.NewTimer(endPatience)
	defer limit.Stop()
	select {
	case <-l.gone:
	case <-limit.C:
		l.kill()
		<-l.gone
	}
	return l.why
}

// ended is why the keeper is gone, also where it ended well, which nobody asked
// it to.
func (l *link) ended() error {
	if l.why != nil {
		return l.why
	}
	return fmt.Errorf("%w: the keeper ended", ErrLost)
}

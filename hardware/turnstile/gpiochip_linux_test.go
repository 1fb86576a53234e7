package turnstile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warthog618/go-gpiocdev"
)

// fakeKernel has chips by name; the value is what opening answers.
type fakeKernel map[string]any

func (k fakeKernel) names() []string {
	var names []string
	for n := range k {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (k fakeKernel) open(name string) (string, chip, error) {
	switch c := k[name].(type) {
	case *fakeChip:
		return c.label, c, nil
	case error:
		return "", nil, c
	}
	return "", nil, os.ErrNotExist
}

// fakeChip takes go-gpiocdev's requests apart as the kernel would.
type fakeChip struct {
	label    string
	n        int
	consumer map[int]string // who holds a line
	lines    map[int]*fakeLine
}

func newFakeChip() *fakeChip {
	return &fakeChip{label: "pinctrl-test", n: 28, consumer: map[int]string{}, lines: map[int]*fakeLine{}}
}

// fakeLine is a line as it was requested.
type fakeLine struct {
	chip      *fakeChip
	offset    int
	consumer  string
	activeLow bool
	output    bool
	debounce  time.Duration
	bias      gpiocdev.LineBias
	edges     gpiocdev.LineEdge
	handler   gpiocdev.EventHandler
	value     int
	values    []int // written, the request's first
	err       error
	seq       uint32
}

func (c *fakeChip) Lines() int   { return c.n }
func (c *fakeChip) Close() error { return nil }
func (c *fakeChip) LineInfo(offset int) (gpiocdev.LineInfo, error) {
	return gpiocdev.LineInfo{Offset: offset, Used: c.consumer[offset] != "", Consumer: strings.TrimSpace(c.consumer[offset])}, nil
}

func (c *fakeChip) RequestLine(offset int, options ...gpiocdev.LineReqOption) (chipLine, error) {
	if c.consumer[offset] != "" {
		return nil, syscall.EBUSY
	}
	l := &fakeLine{chip: c, offset: offset}
	for _, o := range options {
		switch o := o.(type) {
		case gpiocdev.ConsumerOption:
			l.consumer = string(o)
		case gpiocdev.LevelOption:
			l.activeLow = bool(o)
		case gpiocdev.OutputOption:
			l.output, l.value, l.values = true, o[0], []int{o[0]}
		case gpiocdev.InputOption:
		case gpiocdev.LineEdge:
			l.edges = o
		case gpiocdev.EventHandler:
			l.handler = o
		case gpiocdev.DebounceOption:
			l.debounce = time.Duration(o)
		case gpiocdev.LineBias:
			l.bias = o
		default:
			return nil, fmt.Errorf("an option that the test does not know: %T", o)
		}
	}
	c.lines[offset], c.consumer[offset] = l, l.consumer
	return l, nil
}

func (l *fakeLine) SetValue(v int) error {
	if l.err == nil {
		l.value, l.values = v, append(l.values, v)
	}
	return l.err
}
func (l *fakeLine) Value() (int, error) { return l.value, l.err }
func (l *fakeLine) Close() error        { delete(l.chip.consumer, l.offset); return nil }

func chipWiring() Wiring {
	return Wiring{
		Driver: DriverGPIOChip, Chip: "pinctrl-test", ActiveLow: []Line{LineRelay, LinePassageIn}, Debounce: 20 * ms,
		Pins: map[Line]int{LineRelay: 17, LineGreen: 22, LinePassageIn: 5, LineEmergency: 16},
		Pull: map[Line]Pull{LinePassageIn: PullUp},
	}
}

// TestRequestsHaveEverything: the idle value, the polarity and all else are in the
// request, so that the kernel makes no edge.
func TestRequestsHaveEverything(t *testing.T) {
	c := newFakeChip()
	d, err := newChipLines(fakeKernel{"gpiochip0": newOther(), "gpiochip1": c}, chipWiring())
	if err != nil {
		t.Fatal(err)
	}
	relay, green, passage, emergency := c.lines[17], c.lines[22], c.lines[5], c.lines[16]
	if !relay.output || !relay.activeLow || relay.value != 0 || relay.consumer != "gated relay" {
		t.Errorf("relay was requested as %+v", relay)
	}
	if !green.output || green.activeLow || green.value != 0 {
		t.Errorf("green was requested as %+v", green)
	}
	if passage.output || !passage.activeLow || passage.bias != gpiocdev.LineBiasPullUp || passage.debounce != 20*ms ||
		passage.edges != gpiocdev.LineEdgeBoth || passage.handler == nil {
		t.Errorf("passage_in was requested as %+v", passage)
	}
	if emergency.bias != gpiocdev.LineBiasUnknown || emergency.activeLow || emergency.handler == nil {
		t.Errorf("emergency was requested as %+v", emergency)
	}
	if err := errors.Join(d.Set(LineRelay, true), d.Set(LineRelay, false), d.Set(LineAmber, true)); err != nil {
		t.Error(err)
	}
	if got := d.Inputs(); !slices.Equal(got, []Line{LinePassageIn, LineEmergency}) {
		t.Errorf("inputs %v", got)
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil || len(c.consumer) > 0 {
		t.Errorf("closed with %v and %v", err, c.consumer)
	}
	if !slices.Equal(relay.values, []int{0, 1, 0, 0}) || !slices.Equal(green.values, []int{0, 0}) {
		t.Errorf("written: relay %v, green %v", relay.values, green.values)
	}
	if err := d.Set(LineRelay, true); !errors.Is(err, ErrClosed) {
		t.Errorf("set after close: %v", err)
	}
}

func newOther() *fakeChip {
	c := newFakeChip()
	c.label = "raspberrypi-exp-gpio"
	return c
}

// TestChipProblems: each with its remedy, and nothing is left requested.
func TestChipProblems(t *testing.T) {
	c := newFakeChip()
	c.consumer[22] = "led-act"
	short := newFakeChip()
	short.n = 8
	for name, tc := range map[string]struct {
		kernel fakeKernel
		wrong  string
		held   bool
	}{
		"no chips":      {fakeKernel{}, `find GPIO chip "pinctrl-test": this kernel has no GPIO chip`, false},
		"another label": {fakeKernel{"gpiochip0": newOther(), "gpiochip1": syscall.ENODEV}, "the chips here are raspberrypi-exp-gpio", false},
		"not allowed":   {fakeKernel{"gpiochip0": os.ErrPermission}, "add the user to group gpio", false},
		"held":          {fakeKernel{"gpiochip0": c}, `pin 22 (green) is in use by "led-act"`, true},
		"out of range":  {fakeKernel{"gpiochip0": short}, "pin 17 (relay) is not on chip pinctrl-test: it has 0 to 7", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newChipLines(tc.kernel, chipWiring())
			if err == nil || !strings.Contains(err.Error(), tc.wrong) || errors.Is(err, ErrHeld) != tc.held {
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
	if len(c.consumer) != 1 {
		t.Errorf("left requested: %v", c.consumer)
	}
}

// happen lets the kernel tell an edge; silently: it had no room for it.
func (l *fakeLine) happen(active, silently bool) {
	l.seq++
	e := gpiocdev.LineEvent{Offset: l.offset, Timestamp: time.Duration(monotonicAt(time.Now())), Type: gpiocdev.LineEventFallingEdge, LineSeqno: l.seq}
	l.value = 0
	if active {
		e.Type, l.value = gpiocdev.LineEventRisingEdge, 1
	}
	if !silently {
		l.handler(e)
	}
}

// TestKernelEdges: the present state first, then each edge, and the state again
// where edges were lost.
func TestKernelEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeChip()
		d, err := newChipLines(fakeKernel{"gpiochip0": c}, chipWiring())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		done := make(chan error, 1)
		go func() {
			done <- d.Watch(ctx, func(ch Change) { got = append(got, fmt.Sprint(ch.Line, ch.Active)) })
		}()
		synctest.Wait()
		passage := c.lines[5]
		passage.happen(true, false)
		passage.happen(false, false)
		synctest.Wait()
		passage.happen(true, true)
		passage.happen(false, true)
		passage.happen(true, false)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{"passage_in false", "emergency false", "passage_in true", "passage_in false", "passage_in true", "passage_in true"}
		if !slices.Equal(got, want) {
			t.Errorf("told %q\nwant %q", got, want)
		}
	})
}

// TestChipThatIsGone: an adapter that was pulled out is an error of the system's
// own, by which the keeper knows to look for it anew.
func TestChipThatIsGone(t *testing.T) {
	c := newFakeChip()
	d, err := newChipLines(fakeKernel{"gpiochip0": c}, chipWiring())
	if err != nil {
		t.Fatal(err)
	}
	c.lines[17].err = syscall.ENODEV
	if err := d.Set(LineRelay, true); !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "pin 17") {
		t.Errorf("set: %v", err)
	}
	c.lines[5].err = syscall.ENODEV
	if err := d.Watch(t.Context(), func(Change) {}); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("watch: %v", err)
	}
}

package turnstile

import (
	"testing"
	"time"
)

var lamps = []Line{LineRed, LineGreen, LineAmber, LineBuzzer}

// TestSignals shows each signal once and writes down what is to be seen and
// heard for 3 s.
func TestSignals(t *testing.T) {
	red := []edge{{LineRed, true, 0}}
	for _, c := range []struct {
		signal Signal
		want   []edge
	}{
		{SignalIdle, nil},
		{SignalAdmit, []edge{{LineGreen, true, 0}, {LineBuzzer, true, 0}, {LineBuzzer, false, 120 * ms}}},
		{SignalOpen, []edge{{LineGreen, true, 0}}},
		{SignalRefuse, []edge{
			{LineRed, true, 0}, {LineBuzzer, true, 0}, {LineBuzzer, false, 350 * ms},
			{LineBuzzer, true, 500 * ms}, {LineBuzzer, false, 850 * ms}, {LineRed, false, 2500 * ms},
		}},
		{SignalWait, []edge{
			{LineAmber, true, 0}, {LineAmber, false, 500 * ms}, {LineAmber, true, 1000 * ms},
			{LineAmber, false, 1500 * ms}, {LineAmber, true, 2000 * ms}, {LineAmber, false, 2500 * ms},
		}},
		{SignalFault, red},
		{SignalClosed, red},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
				r.Show(c.signal)
				r.wait(2999 * ms)
				r.wantEdges(c.want, lamps...)
			})
		})
	}
}

func TestModeMark(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.SetModeMark(true)
		r.SetModeMark(true)
		r.wait(2050 * ms) // 50 ms into the second blink
		r.Show(SignalAdmit)
		r.wait(sec)
		r.SetModeMark(false)
		r.wait(10 * sec)
		r.wantEdges([]edge{
			{LineAmber, true, 0}, {LineAmber, false, 100 * ms},
			{LineAmber, true, 2000 * ms}, {LineAmber, false, 2100 * ms},
		}, LineAmber)
		r.wantEdges([]edge{{LineGreen, true, 2050 * ms}}, LineGreen)
	})
}

func TestSteadySignalShownAgainChangesNothing(t *testing.T) {
	for _, s := range []Signal{SignalAdmit, SignalOpen, SignalWait, SignalFault, SignalClosed, SignalIdle} {
		t.Run(s.String(), func(t *testing.T) {
			count := func(again time.Duration) (n int) {
				inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
					for d := time.Duration(0); d < 10*sec; d += again {
						r.Show(s)
						r.wait(again)
					}
					n = len(r.b.of(lamps...))
					if writes := r.b.sets[LineRed] + r.b.sets[LineGreen] + r.b.sets[LineAmber] + r.b.sets[LineBuzzer]; writes != n {
						t.Errorf("%d writes for %d edges", writes, n)
					}
				})
				return n
			}
			if once, often := count(10*sec), count(70*ms); often != once && often != once+1 {
				t.Errorf("%d edges shown once, %d shown again and again", once, often)
			}
		})
	}
}

// TestSignalOverSignal is what stands before what, told by the lamps at one
// moment after a few signals. Each step is 100 ms.
func TestSignalOverSignal(t *testing.T) {
	type lit struct{ red, green, amber bool }
	for name, c := range map[string]struct {
		steps []Signal
		after time.Duration
		want  lit
	}{
		"refusal leaves what was shown before": {[]Signal{SignalAdmit, SignalRefuse}, 0, lit{red: true}},
		"and it comes back":                    {[]Signal{SignalAdmit, SignalRefuse}, 3 * sec, lit{green: true}},
		"closed stays closed":                  {[]Signal{SignalClosed, SignalRefuse}, 3 * sec, lit{red: true}},
		"idle does not cut a refusal short":    {[]Signal{SignalAdmit, SignalRefuse, SignalIdle}, sec, lit{red: true}},
		"idle counts after the refusal":        {[]Signal{SignalAdmit, SignalRefuse, SignalIdle}, 3 * sec, lit{}},
		"an admission ends a refusal":          {[]Signal{SignalRefuse, SignalAdmit}, 0, lit{green: true}},
		"a wait ends a refusal":                {[]Signal{SignalRefuse, SignalWait}, 0, lit{amber: true}},
		"a refusal ends a wait for good":       {[]Signal{SignalWait, SignalRefuse}, 3 * sec, lit{}},
		"who waits does not take the green":    {[]Signal{SignalAdmit, SignalWait}, 0, lit{green: true, amber: true}},
		"idle ends a wait":                     {[]Signal{SignalWait, SignalIdle}, 0, lit{}},
		"a verdict ends a wait":                {[]Signal{SignalWait, SignalAdmit}, 0, lit{green: true}},
		"a fault ends a wait":                  {[]Signal{SignalWait, SignalFault}, 0, lit{red: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
				for _, s := range c.steps {
					r.Show(s)
					r.wait(100 * ms)
				}
				r.wait(c.after)
				got := lit{r.b.isActive(LineRed), r.b.isActive(LineGreen), r.b.isActive(LineAmber)}
				if got != c.want {
					t.Errorf("lamps %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestRedHasNoGapBetweenRefusalAndClosed(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.Show(SignalRefuse)
		r.wait(sec)
		r.Show(SignalClosed)
		r.wait(10 * sec)
		r.wantEdges([]edge{{LineRed, true, 0}}, LineRed)
	})
}

func TestRefusalShownAgainStartsAgain(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.Show(SignalRefuse)
		r.wait(2 * sec)
		r.Show(SignalRefuse)
		r.wait(10 * sec)
		r.wantEdges([]edge{{LineRed, true, 0}, {LineRed, false, 4500 * ms}}, LineRed)
		if n := len(r.b.of(LineBuzzer)); n != 8 {
			t.Errorf("%d edges of the buzzer", n)
		}
	})
}

func TestSecondAdmissionInAnOpenTurnstileIsHeard(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		for range 2 {
			r.Show(SignalOpen)
			r.Show(SignalAdmit)
			r.wait(5 * sec)
		}
		r.wantEdges([]edge{{LineGreen, true, 0}}, LineGreen)
		if n := len(r.b.of(LineBuzzer)); n != 4 {
			t.Errorf("%d edges of the buzzer", n)
		}
	})
}

func TestLampThatCannotBeWritten(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.b.failing(func(line Line, active bool) error {
			if line == LineRed {
				return errBroken
			}
			return nil
		})
		r.Show(SignalFault)
		r.wait(10*sec + 500*ms)
		r.wantKinds(Fault) // once, though it was tried ten times more
		if n := r.b.sets[LineRed]; n != 11 {
			t.Errorf("tried %d times in 10.5 s", n)
		}
		r.b.failing(nil)
		r.wait(sec)
		r.wantEdges([]edge{{LineRed, true, 11 * sec}}, lamps...)
		r.wantKinds(FaultOff)
	})
}

// TestLight: the light is on for as long as the camera needs it, whatever is
// signalled meanwhile, and off at the end.
func TestLight(t *testing.T) {
	var b *bench
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		b = r.b
		r.wait(sec)
		r.Light(true)
		r.Light(true)
		r.wait(sec)
		r.Show(SignalRefuse)
		r.wait(10 * sec)
		r.Light(false)
		r.wait(sec)
		r.Light(true)
		r.wait(sec)
		r.wantEdges([]edge{{LineLight, true, sec}, {LineLight, false, 12 * sec}, {LineLight, true, 13 * sec}}, LineLight)
	})
	if b.isActive(LineLight) {
		t.Error("the light is on after the end")
	}
}

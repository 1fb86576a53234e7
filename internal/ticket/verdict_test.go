package ticket

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The object of the interface that outsiders' scripts read: names, order, nulls
// and forms are fixed.
func TestVerdictJSON(t *testing.T) {
	at := time.Date(2030, 6, 1, 20, 15, 30, 123_456_789, time.FixedZone("CEST", 2*3600))
	tests := []struct {
		name string
		v    Verdict
		want string
	}{
		{"refused offline, citing the first", Verdict{
			Time: at, Gate: "North 2", Lane: "1", Ticket: ID{0x0f}.String(), Verdict: Refuse, Reason: AlreadyUsed,
			FirstSeen: at.Add(-time.Minute), FirstGate: "South", Claim: ClaimID{Gate: "g", Run: 1, Pos: 2}.String(),
			GateMode: ModeNormal, Clock: Untrusted, Took: 12_345_678 * time.Nanosecond,
		}, `{"time":"2030-06-01T18:15:30.123Z","gate":"North 2","lane":"1","ticket":"0f000000000000000000000000000000",` +
			`"verdict":"refuse","reason":"already_used","first_seen":"2030-06-01T18:14:30.123Z","first_gate":"South",` +
			`"claim":"g/0000000000000001/2","mode":"offline","gate_mode":"normal","clock":"untrusted","ms":12.345}`},
		{"admitted online, nothing to cite", Verdict{
			Time: at, Gate: "North 2", Lane: "1", Ticket: ID{0x0f}.String(), Verdict: Admit, Reason: OK,
			Claim: ClaimID{Gate: "g", Run: 1, Pos: 2}.String(), Online: true, GateMode: ModeTest, Clock: Trusted, Took: time.Millisecond,
		}, `{"time":"2030-06-01T18:15:30.123Z","gate":"North 2","lane":"1","ticket":"0f000000000000000000000000000000",` +
			`"verdict":"admit","reason":"ok","first_seen":null,"first_gate":null,` +
			`"claim":"g/0000000000000001/2","mode":"online","gate_mode":"test","clock":"trusted","ms":1}`},
		{"junk", Verdict{Time: at, Gate: "G\n\"", Lane: "1", Verdict: Refuse, Reason: Invalid, GateMode: ModeNormal},
			`{"time":"2030-06-01T18:15:30.123Z","gate":"G\n\"","lane":"1","ticket":"",` +
				`"verdict":"refuse","reason":"invalid","first_seen":null,"first_gate":null,` +
				`"claim":"","mode":"offline","gate_mode":"normal","clock":"trusted","ms":0}`},
	}
	for _, tt := range tests {
		b, err := json.Marshal(tt.v)
		if err != nil || string(b) != tt.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", tt.name, b, err, tt.want)
		}
	}
}

func TestVerdictRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := func(name string) time.Time {
			return time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, name)).UTC()
		}
		v := Verdict{
			Time: moment("time"), Gate: "North", Lane: "1", Ticket: drawID(t).String(), Verdict: Wait, Reason: InProgress,
			Claim: drawClaimID(t).String(), Online: rapid.Bool().Draw(t, "online"), GateMode: ModeFree,
			Clock: Class(rapid.IntRange(0, 1).Draw(t, "clock")),
			Took:  time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "us")) * time.Microsecond,
		}
		if rapid.Bool().Draw(t, "cites") {
			v.FirstSeen, v.FirstGate = moment("first"), "South"
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got Verdict
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("got %+v, %v\nwant %+v\nfrom %s", got, err, v, b)
		}
	})
	for us := range 5000 {
		b, err := json.Marshal(Verdict{Took: time.Duration(us) * time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		var got Verdict
		if err := json.Unmarshal(b, &got); err != nil || got.Took.Microseconds() != int64(us) {
			t.Fatalf("%d µs became %s, %v", us, got.Took, err)
		}
	}
	for _, bad := range []string{`{"time":""}`, `{}`, `[]`, `{"time":"2030-06-01T18:15:30Z","first_seen":"x"}`} {
		if err := json.Unmarshal([]byte(bad), new(Verdict)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestRulings(t *testing.T) {
	want := map[Ruling][]Reason{
		Admit: {OK, Free},
		Wait:  {InProgress, Busy, CatchingUp},
		Refuse: {AlreadyUsed, Invalid, WrongEvent, WrongSession, WrongProduct, WrongZone, NotYetValid, Expired, Revoked,
			Unknown, TestTicket, Closed, Offline, ClockUntrusted, NotReady, Fault},
	}
	for ruling, reasons := range want {
		for _, r := range reasons {
			if r.Ruling() != ruling {
				t.Errorf("%s is %s, want %s", r, r.Ruling(), ruling)
			}
		}
	}
	for _, m := range []GateMode{ModeNormal, ModeClosed, ModeFree, ModeTest} {
		if !m.Valid() {
			t.Errorf("mode %q is refused", m)
		}
	}
	if GateMode("").Valid() || GateMode("Normal").Valid() {
		t.Error("a mode that is none of the four is accepted")
	}
}

// Result lines are read by the same scripts.
func TestResultJSON(t *testing.T) {
	b, err := json.Marshal(Result{Time: "2030-06-01T18:15:30.123Z", Gate: "North", Claim: "c", Ticket: "t", Result: Presumed})
	const want = `{"time":"2030-06-01T18:15:30.123Z","gate":"North","claim":"c","ticket":"t","result":"presumed"}`
	if err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
	if s := State(math.MaxUint8).String(); s != "state-255" {
		t.Errorf("an unknown state is %q", s)
	}
}

package ticket

import (
	"testing"
)

func TestReadReasons(t *testing.T) {
	v := fairVerifier(t)
	with := func(change func(*Ticket)) Ticket {
		tk := galaTicket()
		change(&tk)
		return tk
	}
	tests := []struct {
		name, text string
		want       Reason
	}{
		{"signed by the event's key", mint(t, signerOf(1), galaTicket()), OK},
		{"signed by its other key", mint(t, signerOf(2), galaTicket()), OK},
		{"signed by a demo key", mint(t, signerOf(3), galaTicket()), Unknown},
		{"signed by nobody's key", mint(t, signerOf(9), galaTicket()), Unknown},
		{"unknown event", mint(t, signerOf(1), with(func(tk *Ticket) { tk.Event = "picnic" })), Unknown},
		{"key of another event", mint(t, signerOf(2), with(func(tk *Ticket) { tk.Event = "derby" })), Unknown},
		{"event without signed tickets", mint(t, signerOf(1), with(func(tk *Ticket) { tk.Event = "market" })), Unknown},
		{"test ticket", mint(t, signerOf(1), with(func(tk *Ticket) { tk.Test = true })), OK},
		{"listed code", "DERBY-0001", OK},
		{"code of an event at another place", "MARKET-0001", OK},
		{"code in another case", "derby-0001", Invalid},
		{"code with a space", "DERBY-0001 ", Invalid},
		{"code with a newline", "DERBY-0001\n", Invalid},
		{"unlisted code", "DERBY-0002", Invalid},
		{"empty", "", Invalid},
		{"not UTF-8", "\xff\xfe", Invalid},
	}
	for _, tt := range tests {
		got, reason := v.Read(tt.text)
		if reason != tt.want || (reason == OK) == (got == Ticket{}) {
			t.Errorf("%s: %s %+v, want %s", tt.name, reason, got, tt.want)
		}
	}
}

// A key id only selects: another key under the same id does not verify.
func TestKeyIDProvesNothing(t *testing.T) {
	v := fairVerifier(t)
	keys := v.signed["gala"]
	tag := tagOf(signerOf(1).Public())
	keys[tag] = verifierKey{public: signerOf(9).Public()}
	if _, reason := v.Read(mint(t, signerOf(1), galaTicket())); reason != Invalid {
		t.Errorf("verified with another key: %s, want invalid", reason)
	}
}

func TestDemoKeysCountOnlyWhereAllowed(t *testing.T) {
	text := mint(t, signerOf(3), galaTicket())
	v, err := NewVerifier(fair(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, reason := v.Read(text); reason != OK {
		t.Errorf("demo key with demo = true: %s, want ok", reason)
	}
}

// Where code is the only format, a text that is on no list is unknown, unless it
// could not be a code at all.
func TestOnlyCodes(t *testing.T) {
	p := fair()
	p.Events = p.Events[2:]
	v, err := NewVerifier(p, fairCodes(), false)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Reason{
		"MARKET-0001": OK, "market-0001": Unknown, "DERBY-0001": Unknown, " MARKET-0001": Unknown,
		mint(t, signerOf(1), galaTicket()): Unknown, "": Invalid, "MARKET-0001\n": Invalid, "\xff": Invalid,
	} {
		if _, reason := v.Read(text); reason != want {
			t.Errorf("%q: %s, want %s", text, reason, want)
		}
	}
}

func TestProgrammeWithoutEvents(t *testing.T) {
	v, err := NewVerifier(Programme{Version: 1}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, reason := v.Read(mint(t, signerOf(1), galaTicket())); reason != Unknown {
		t.Errorf("a ticket is %s, want unknown", reason)
	}
	if _, reason := v.Read("junk"); reason != Invalid {
		t.Errorf("junk is %s, want invalid", reason)
	}
}

func TestNewVerifierRefusesABadProgramme(t *testing.T) {
	p := fair()
	p.Events[0].Keys[0].ID = "00000000"
	if _, err := NewVerifier(p, nil, false); err == nil {
		t.Error("accepted a key under another key's id")
	}
}

// A code that several events list is the ticket of the event that is on here.
func TestCheckTakesTheEventThatIsOn(t *testing.T) {
	v := fairVerifier(t)
	tests := []struct {
		name, text, place, event string
		hour                     int
		want                     Reason
	}{
		{"derby at its place", "SEASON-0001", "West", "derby", 17, OK},
		{"both on at the east gate: the first", "SEASON-0001", "East", "derby", 17, OK},
		{"market's own code", "MARKET-0001", "East", "market", 17, OK},
		{"market's code where it is not served", "MARKET-0001", "West", "market", 17, WrongEvent},
		{"too early", "SEASON-0001", "East", "derby", 15, Closed},
		{"at the gala", "SEASON-0001", "Main", "derby", 11, WrongEvent},
	}
	for _, tt := range tests {
		got, reason := v.Check(tt.text, Where{Place: tt.place, Now: clock(tt.hour, 0)})
		if reason != tt.want || got.Event != tt.event || got.Format != FormatCode {
			t.Errorf("%s: %s for %q, want %s for %q", tt.name, reason, got.Event, tt.want, tt.event)
		}
	}
	p := fair()
	p.Events[1].Close = clock(17, 0)
	later, err := NewVerifier(p, fairCodes(), false)
	if err != nil {
		t.Fatal(err)
	}
	got, reason := later.Check("SEASON-0001", Where{Place: "East", Now: clock(17, 30)})
	if reason != OK || got.Event != "market" || got.ID != CodeHash(codeKey(2), "SEASON-0001") {
		t.Errorf("the derby is over: %s for %+v, want the market's ticket", reason, got)
	}
	if got, reason := later.Check("nonsense", Where{Place: "East"}); reason != Invalid || got != (Ticket{}) {
		t.Errorf("nonsense is %s, %+v", reason, got)
	}
}

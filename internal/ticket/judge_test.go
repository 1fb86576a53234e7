package ticket

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestJudge(t *testing.T) {
	with := func(change func(*Ticket)) Ticket {
		tk := galaTicket()
		change(&tk)
		return tk
	}
	plain := Ticket{Format: FormatA1, ID: ID{1}, Event: "gala"}
	at := func(place string, hour, minute int) Where { return Where{Place: place, Now: clock(hour, minute)} }
	tests := []struct {
		name string
		tk   Ticket
		at   Where
		want Reason
	}{
		{"in its session and zone", galaTicket(), at("North 2", 11, 0), OK},
		{"unknown event", with(func(tk *Ticket) { tk.Event = "picnic" }), at("North 2", 11, 0), Unknown},
		{"doors open", plain, at("Main", 10, 0), OK},
		{"before doors", plain, Where{Place: "Main", Now: clock(10, 0).Add(-1)}, Closed},
		{"until close", plain, Where{Place: "Main", Now: clock(14, 0).Add(-1)}, OK},
		{"at close", plain, at("Main", 14, 0), Closed},
		{"another event is on", plain, at("Main", 17, 0), WrongEvent},
		{"later event's ticket", Ticket{Event: "derby"}, at("Main", 11, 0), WrongEvent},
		{"place that does not serve it, nothing on", plain, at("East", 11, 0), Closed},
		{"place that does not serve it, another on", Ticket{Event: "market"}, at("West", 17, 0), WrongEvent},
		{"two events on at one place", Ticket{Event: "market"}, at("East", 17, 0), OK},
		{"session over", galaTicket(), at("North 2", 12, 0), WrongSession},
		{"session begins", with(func(tk *Ticket) { tk.Session = "late" }), at("North 2", 12, 0), OK},
		{"session not begun", with(func(tk *Ticket) { tk.Session = "late" }), at("North 2", 11, 59), WrongSession},
		{"no such session", with(func(tk *Ticket) { tk.Session = "night" }), at("North 2", 11, 0), WrongSession},
		{"session of an event without", Ticket{Event: "derby", Session: "early"}, at("West", 17, 0), WrongSession},
		{"other zone", with(func(tk *Ticket) { tk.Zone = "stand-s" }), at("North 2", 11, 0), WrongZone},
		{"any zone", with(func(tk *Ticket) { tk.Zone = "" }), at("North 2", 11, 0), OK},
		{"any zone where all are let in", with(func(tk *Ticket) { tk.Zone = "stand-s" }), at("Main", 11, 0), OK},
		{"product", with(func(tk *Ticket) { tk.Zone, tk.Product = "", "crew" }), at("South", 11, 0), OK},
		{"product of another place", with(func(tk *Ticket) { tk.Zone, tk.Product = "", "press" }), at("South", 11, 0), WrongProduct},
		{"product that the event does not have", with(func(tk *Ticket) { tk.Zone, tk.Product = "", "vip" }), at("Main", 11, 0), WrongProduct},
		{"any product", plain, at("South", 11, 0), OK},
		{"not yet", with(func(tk *Ticket) { tk.NotBefore = clock(11, 0).Add(1) }), at("North 2", 11, 0), NotYetValid},
		{"just valid", with(func(tk *Ticket) { tk.NotBefore = clock(11, 0) }), at("North 2", 11, 0), OK},
		{"just expired", with(func(tk *Ticket) { tk.Expires = clock(11, 0) }), at("North 2", 11, 0), Expired},
		{"not yet expired", with(func(tk *Ticket) { tk.Expires = clock(11, 0).Add(1) }), at("North 2", 11, 0), OK},

		{"event before session", with(func(tk *Ticket) { tk.Session = "night" }), at("North 2", 17, 0), WrongEvent},
		{"session before zone", with(func(tk *Ticket) { tk.Session, tk.Zone = "late", "x" }), at("North 2", 11, 0), WrongSession},
		{"zone before expiry", with(func(tk *Ticket) { tk.Zone, tk.Expires = "x", clock(9, 30) }), at("North 2", 11, 0), WrongZone},
		{"a test ticket is judged like any", with(func(tk *Ticket) { tk.Test = true }), at("North 2", 11, 0), OK},
	}
	p := fair()
	for _, tt := range tests {
		if got := p.Judge(tt.tk, tt.at); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestJudgeUnderAnUntrustedClock(t *testing.T) {
	with := func(change func(*Ticket)) Ticket {
		tk := galaTicket()
		change(&tk)
		return tk
	}
	plain := Ticket{Format: FormatA1, ID: ID{1}, Event: "gala"}
	wrong := clock(3, 0).AddDate(-30, 0, 0) // what a box without a clock thinks
	tests := []struct {
		name          string
		tk            Ticket
		place, last   string
		admit, refuse Reason // by policy
	}{
		{"last event", plain, "Main", "gala", OK, OK},
		{"its session and window", galaTicket(), "North 2", "gala", OK, ClockUntrusted},
		{"only a window", with(func(tk *Ticket) { tk.Session = "" }), "North 2", "gala", OK, ClockUntrusted},
		{"only an end", Ticket{Event: "gala", Expires: clock(15, 0)}, "Main", "gala", OK, ClockUntrusted},
		{"session that does not exist", with(func(tk *Ticket) { tk.Session = "night" }), "North 2", "gala", WrongSession, WrongSession},
		{"wrong zone is wrong by any clock", with(func(tk *Ticket) { tk.Zone = "x" }), "North 2", "gala", WrongZone, WrongZone},
		{"wrong product too", with(func(tk *Ticket) { tk.Zone, tk.Product = "", "vip" }), "North 2", "gala", WrongProduct, WrongProduct},
		{"another event than the last", Ticket{Event: "derby"}, "Main", "gala", WrongEvent, WrongEvent},
		{"the last event is not here", plain, "East", "gala", Closed, Closed},
		{"unknown event", Ticket{Event: "picnic"}, "Main", "gala", Unknown, Unknown},
		{"no last event", plain, "Main", "", OK, ClockUntrusted},
		{"no last event, later one's ticket", Ticket{Event: "derby"}, "Main", "", OK, ClockUntrusted},
		{"no last event, not served here", plain, "East", "", WrongEvent, ClockUntrusted},
		{"last event is gone from the programme", plain, "Main", "circus", OK, ClockUntrusted},
	}
	p := fair()
	for _, tt := range tests {
		at := Where{Place: tt.place, Now: wrong, Clock: Untrusted, Last: tt.last}
		if got := p.Judge(tt.tk, at); got != tt.refuse {
			t.Errorf("%s, policy refuse: %s, want %s", tt.name, got, tt.refuse)
		}
		at.UntrustedAdmit = true
		if got := p.Judge(tt.tk, at); got != tt.admit {
			t.Errorf("%s, policy admit: %s, want %s", tt.name, got, tt.admit)
		}
	}
}

// Under an untrusted clock no verdict depends on what the clock says, and under a
// trusted one neither the policy nor the last event counts.
func TestJudgeIgnoresWhatDoesNotCount(t *testing.T) {
	p := fair()
	rapid.Check(t, func(t *rapid.T) {
		tk := Ticket{
			Event:   rapid.SampledFrom([]string{"gala", "derby", "market", "picnic"}).Draw(t, "event"),
			Session: rapid.SampledFrom([]string{"", "early", "late", "night"}).Draw(t, "session"),
			Zone:    rapid.SampledFrom([]string{"", "pit", "stand-s"}).Draw(t, "zone"),
			Product: rapid.SampledFrom([]string{"", "crew", "vip"}).Draw(t, "product"),
		}
		moment := func(name string) time.Time { return clock(0, rapid.IntRange(0, 24*60).Draw(t, name)) }
		if rapid.Bool().Draw(t, "window") {
			tk.NotBefore, tk.Expires = moment("nbf"), moment("exp")
		}
		last := rapid.SampledFrom([]string{"", "gala", "derby", "circus"})
		at := Where{
			Place: rapid.SampledFrom([]string{"North 2", "South", "Main", "East", "West"}).Draw(t, "place"),
			Now:   moment("now"), UntrustedAdmit: rapid.Bool().Draw(t, "admit"), Last: last.Draw(t, "last"),
		}
		trusted := p.Judge(tk, at)
		if trusted == ClockUntrusted {
			t.Fatal("a trusted clock was not trusted")
		}
		other := at
		other.UntrustedAdmit, other.Last = !at.UntrustedAdmit, last.Draw(t, "other_last")
		if got := p.Judge(tk, other); got != trusted {
			t.Fatalf("%s, with another policy and last event %s", trusted, got)
		}
		at.Clock = Untrusted
		untrusted := p.Judge(tk, at)
		if untrusted == NotYetValid || untrusted == Expired {
			t.Fatalf("%s by an untrusted clock", untrusted)
		}
		other = at
		other.Now = moment("another_now")
		if got := p.Judge(tk, other); got != untrusted {
			t.Fatalf("%s, at another untrusted time %s", untrusted, got)
		}
	})
}

func TestOn(t *testing.T) {
	p := fair()
	for _, tt := range []struct {
		place string
		hour  int
		want  []string
	}{
		{"Main", 11, []string{"gala"}}, {"East", 11, nil}, {"Main", 15, nil}, {"Main", 17, []string{"derby"}},
		{"East", 17, []string{"derby", "market"}}, {"East", 18, nil},
	} {
		var got []string
		for _, e := range p.On(tt.place, clock(tt.hour, 0)) {
			got = append(got, e.ID)
		}
		if len(got) != len(tt.want) || len(got) > 0 && got[len(got)-1] != tt.want[len(got)-1] {
			t.Errorf("at %s at %d: %v, want %v", tt.place, tt.hour, got, tt.want)
		}
	}
}

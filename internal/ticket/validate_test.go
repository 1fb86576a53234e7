package ticket

import (
	"strings"
	"testing"
	"time"
)

func TestValidateTellsEveryProblem(t *testing.T) {
	if err := fair().Validate(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		change func(*Programme)
		want   string
	}{
		{func(p *Programme) { p.Version = 0 }, "version: 0"},
		{func(p *Programme) { p.Events = make([]ProgrammeEvent, maxEvents+1) }, "events: 257 entries"},
		{func(p *Programme) { p.Events[0].ID = "" }, "events[0].id: empty"},
		{func(p *Programme) { p.Events[0].ID = "ga/la" }, `events[0].id: "ga/la" has '/'`},
		{func(p *Programme) { p.Events[0].ID = strings.Repeat("x", 25) }, "events[0].id: "},
		{func(p *Programme) { p.Events[1].ID = "gala" }, `events[1].id: "gala" is there twice`},
		{func(p *Programme) { p.Events[0].Name = "a\nb" }, "events[0].name: "},
		{func(p *Programme) { p.Events[0].Open = time.Time{} }, "events[0].open: not set"},
		{func(p *Programme) { p.Events[0].Close = p.Events[0].Close.Add(1) }, "events[0].close: "},
		{func(p *Programme) { p.Events[0].Close = p.Events[0].Open }, "events[0].close: "},
		{func(p *Programme) { p.Events[0].Forget = p.Events[0].Close.Add(-time.Second) }, "events[0].forget: "},
		{func(p *Programme) { p.Events[0].Forget = time.Unix(1<<40, 0) }, "events[0].forget: "},
		{func(p *Programme) { p.Events[0].Sessions[1].ID = "early" }, `events[0].sessions[1].id: "early" is there twice`},
		{func(p *Programme) { p.Events[0].Sessions[0].ID = "é" }, "events[0].sessions[0].id: "},
		{func(p *Programme) { p.Events[0].Sessions[0].To = p.Events[0].Sessions[0].From }, "events[0].sessions[0].to: "},
		{func(p *Programme) { p.Events[0].Sessions[0].From = time.Time{} }, "events[0].sessions[0].from: not set"},
		{func(p *Programme) {
			p.Events[0].Sessions[0].From, p.Events[0].Sessions[0].To = clock(14, 0), clock(15, 0)
		}, "events[0].sessions[0].from: the session is never on"},
		{func(p *Programme) { p.Events[0].Places[0].Place = " North" }, "events[0].places[0].place: "},
		{func(p *Programme) { p.Events[0].Places[0].Place = "" }, "events[0].places[0].place: empty"},
		{func(p *Programme) { p.Events[0].Places[1].Place = "North 2" }, `events[0].places[1].place: "North 2" is there twice`},
		{func(p *Programme) { p.Events[0].Places[0].Zones[1] = "the pit" }, "events[0].places[0].zones[1]: "},
		{func(p *Programme) { p.Events[0].Places[0].Zones[1] = "stand-n" }, "events[0].places[0].zones[1]: "},
		{func(p *Programme) { p.Events[0].Places[1].Products[0] = "vip" }, "events[0].places[1].products[0]: "},
		{func(p *Programme) { p.Events[0].Products[0] = "" }, "events[0].products[0]: empty"},
		{func(p *Programme) { p.Events[0].Formats = nil }, "events[0].formats: empty"},
		{func(p *Programme) { p.Events[0].Formats[0] = "A1" }, "events[0].formats[0]: "},
		{func(p *Programme) { p.Events[0].Formats = []string{"a1", "a1"} }, "events[0].formats[1]: "},
		{func(p *Programme) { p.Events[0].Keys = nil }, "events[0].keys: empty"},
		{func(p *Programme) { p.Events[0].Keys[1].ID = "0" }, "events[0].keys[1].id: "},
		{func(p *Programme) { p.Events[0].Keys[1] = p.Events[0].Keys[0] }, "events[0].keys[1].id: "},
		{func(p *Programme) { p.Events[0].Keys[1].Public = "ab" }, "events[0].keys[1].public: "},
		{func(p *Programme) { p.Events[0].Keys[1].Public = strings.ToUpper(p.Events[0].Keys[1].Public) }, "events[0].keys[1].public: "},
		{func(p *Programme) { p.Events[2].Keys = p.Events[0].Keys }, "events[2].keys: given"},
		{func(p *Programme) { p.Events[1].CodeKey = "" }, "events[1].code_key: "},
		{func(p *Programme) { p.Events[1].CodeKey = strings.Repeat("AB", 32) }, "events[1].code_key: "},
		{func(p *Programme) { p.Events[0].CodeKey = p.Events[1].CodeKey }, "events[0].code_key: given"},
	}
	for _, tt := range tests {
		p := fair()
		tt.change(&p)
		err := p.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	all := fair()
	all.Version, all.Events[0].ID, all.Events[1].CodeKey, all.Events[2].Formats = 0, "", "x", nil
	err := all.Validate()
	for _, want := range []string{"version: ", "events[0].id: ", "events[1].code_key: ", "events[2].formats: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "\"x\"") {
		t.Errorf("the error quotes the secret: %v", err)
	}
}

// Names that pass are those that a ticket, a path, a subject and a log can hold
// as they are.
func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "0", "gala-2030", "Stand_N.2", "VIP+", strings.Repeat("x", MaxNames)} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "-a", ".a", "+a", "_a", "a b", "a/b", "a\\b", "a:b", "a\n", "a\x00", "é", "a*", "a>", strings.Repeat("x", MaxNames+1)} {
		if err := CheckName(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

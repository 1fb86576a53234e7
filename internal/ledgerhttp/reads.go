package ledgerhttp

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func (s *Server) conflicts(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Query().Get("format") {
	case "csv":
		s.conflictsCSV(w, r)
	case "", "json":
		s.get(s.conflictPage)(w, r)
	default:
		problem(badRequest, "format is json or csv").write(w)
	}
}

func (s *Server) conflictPage(r *http.Request) (any, *Problem) {
	after, limit, p := cursor(r)
	if p != nil {
		return nil, p
	}
	list, next, err := s.opt.Ledger.Conflicts(r.Context(), after, limit)
	return ConflictPage{Conflicts: list, Next: next}, s.outcome("list conflicts", err)
}

// conflictsCSV exports all conflicts for a spreadsheet, one line for each claim.
func (s *Server) conflictsCSV(w http.ResponseWriter, r *http.Request) {
	if _, p := s.bearer(r, ScopeRead); p != nil {
		p.write(w)
		return
	}
	list, next, err := s.opt.Ledger.Conflicts(r.Context(), "", maxPage)
	if p := s.outcome("export conflicts", err); p != nil {
		p.write(w)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="conflicts.csv"`)
	out := csv.NewWriter(w)
	out.Write([]string{"conflict", "event", "ticket", "state", "announced", "certain", "ordered", "note", "side", "gate", "time", "clock", "claim", "outage"})
	for len(list) > 0 {
		for _, c := range list {
			out.WriteAll(csvRows(c))
		}
		if len(list) < maxPage {
			break
		}
		if list, next, err = s.opt.Ledger.Conflicts(r.Context(), next, maxPage); err != nil {
			s.opt.Log.Error("http request", "doing", "export conflicts", "err", err)
			panic(http.ErrAbortHandler) // the head is out: a cut connection is the only way left to say that lines are missing
		}
	}
	out.Flush()
}

func csvRows(c ledger.Conflict) [][]string {
	var rows [][]string
	for i, side := range append([]ledger.ConflictSide{c.First}, c.Others...) {
		label := "other"
		if i == 0 {
			label = "first"
		}
		clock, _ := side.Clock.MarshalText()
		rows = append(rows, []string{
			c.ID, cell(c.Event), c.Ticket, string(c.State), c.Announced, strconv.FormatBool(c.Certain), strconv.FormatBool(c.Ordered),
			cell(c.Note), label, cell(side.Gate), side.Time, string(clock), side.Claim, c.Outage,
		})
	}
	return rows
}

// cell keeps a spreadsheet from taking a text that people wrote for a formula.
func cell(s string) string {
	if strings.IndexAny(s, "=+-@\t\r") == 0 {
		return "'" + s
	}
	return s
}

func (s *Server) conflict(r *http.Request) (any, *Problem) {
	c, err := s.opt.Ledger.Conflict(r.Context(), r.PathValue("id"))
	return c, s.outcome("read conflict", err)
}

func (s *Server) alarms(r *http.Request) (any, *Problem) {
	after, limit, p := cursor(r)
	if p != nil {
		return nil, p
	}
	list, next, err := s.opt.Ledger.Alarms(r.Context(), after, limit)
	return AlarmPage{Alarms: list, Next: next}, s.outcome("list alarms", err)
}

func (s *Server) gates(r *http.Request) (any, *Problem) {
	list, err := s.opt.Ledger.Gates(r.Context())
	return GateList{Gates: list}, s.outcome("list gates", err)
}

func (s *Server) stats(r *http.Request) (any, *Problem) {
	st, err := s.opt.Ledger.Stats(r.Context())
	return Stats{Time: stamp(s.opt.Now()), Stats: st}, s.outcome("count", err)
}

// verdicts gives what gates told; a line that is no verdict is left out, so that
// a broken gate cannot break the page of all.
func (s *Server) verdicts(*http.Request) (any, *Problem) {
	out := VerdictList{Verdicts: []ticket.Verdict{}}
	for _, line := range slices.Backward(s.opt.Ledger.Verdicts()) {
		var v ticket.Verdict
		if json.Unmarshal(line, &v) == nil {
			out.Verdicts = append(out.Verdicts, v)
		}
	}
	return out, nil
}

func (s *Server) ticket(r *http.Request) (any, *Problem) {
	format, p := parseFormat(r.URL.Query().Get("format"))
	if p != nil {
		return nil, p
	}
	id, err := ticket.ParseID(r.PathValue("id"))
	if err != nil {
		return nil, problem(badRequest, "%v", err)
	}
	t, err := s.opt.Ledger.Ticket(r.Context(), format, id)
	return t, s.outcome("read ticket", err)
}

func parseFormat(name string) (ticket.Format, *Problem) {
	switch name {
	case "", ticket.FormatA1.String():
		return ticket.FormatA1, nil
	case ticket.FormatCode.String():
		return ticket.FormatCode, nil
	}
	return 0, problem(badRequest, "the format %q is not known; the formats are a1 and code", name)
}

// programme gives what is on, without the hash keys of code lists: with one, who
// reads the id of a code's ticket could find the code by trying.
func (s *Server) programme(r *http.Request) (any, *Problem) {
	p, err := s.opt.Ledger.Programme(r.Context())
	p.Events = slices.Clone(p.Events)
	for i := range p.Events {
		p.Events[i].CodeKey = ""
	}
	return p, s.outcome("read programme", err)
}

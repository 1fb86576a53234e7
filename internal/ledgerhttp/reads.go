package ledgerhttp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// conflicts is the list in pages, or, with ?format=csv, the export of all for a
// spreadsheet, one line for each claim.
func (s *Server) conflicts() http.HandlerFunc {
	page := pages(s, s.opt.Ledger.Conflicts, func(list []ledger.Conflict, next string) any {
		return ConflictPage{Conflicts: list, Next: next}
	})
	whole := s.conflictsCSV()
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("format") {
		case "csv":
			whole(w, r)
		case "", "json":
			page(w, r)
		default:
			problem(badRequest, "format is json or csv").write(w)
		}
	}
}

// conflictsCSV is the export as CSV under a name of its own.
func (s *Server) conflictsCSV() http.HandlerFunc {
	whole := export(s, s.opt.Ledger.Conflicts, conflictTable())
	return func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = "format=csv"
		whole(w, r)
	}
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
		return nil, problem(badRequest, "%v", err).about("id")
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
	return 0, problem(badRequest, "the format %q is not known; the formats are a1 and code", name).about("format")
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

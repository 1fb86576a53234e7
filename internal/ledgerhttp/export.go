package ledgerhttp

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"admitone/internal/audit"
	"admitone/internal/ledger"
)

// lister gives a page of a list, as a handler of pages has it.
type lister[T any] func(ctx context.Context, after string, limit int) ([]T, string, error)

// table is how a thing stands in a spreadsheet; a thing may be several lines.
type table[T any] struct {
	name  string
	head  []string
	lines func(T) [][]string
}

// export makes a handler that sends a whole list as a file: JSON, one object a
// line, or CSV (?format=csv). Nothing is held meanwhile but a page.
func export[T any](s *Server, list lister[T], t table[T]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format := r.URL.Query().Get("format")
		_, p := s.bearer(r, ScopeRead)
		if p == nil && format != "" && format != "json" && format != "csv" {
			p = problem(badRequest, "format is json or csv").about("format")
		}
		var rows []T
		var next string
		if p == nil {
			var err error
			rows, next, err = list(r.Context(), "", maxPage)
			p = s.outcome("export "+t.name, err)
		}
		if p != nil {
			p.write(w)
			return
		}
		put, end := t.writer(w, format)
		for len(rows) > 0 {
			for _, x := range rows {
				put(x)
			}
			if len(rows) < maxPage {
				break
			}
			var err error
			if rows, next, err = list(r.Context(), next, maxPage); err != nil {
				s.opt.Log.Error("http request", "doing", "export "+t.name, "err", err)
				panic(http.ErrAbortHandler) // the head is out: a cut connection is the only way left to say that lines are missing
			}
		}
		end()
	}
}

// writer sends the head of a file, and gives what writes a thing and what ends it.
func (t table[T]) writer(w http.ResponseWriter, format string) (put func(T), end func()) {
	kind, suffix := "application/x-ndjson", ".jsonl"
	if format == "csv" {
		kind, suffix = "text/csv; charset=utf-8", ".csv"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+t.name+suffix+`"`)
	if format == "csv" {
		out := csv.NewWriter(w)
		out.Write(t.head)
		return func(x T) { out.WriteAll(t.lines(x)) }, out.Flush
	}
	return func(x T) { jsonLine(w, x) }, func() {}
}

func jsonLine(w io.Writer, x any) {
	if b, err := json.Marshal(x); err == nil { // what is exported are structs of texts and numbers
		w.Write(append(b, '\n'))
	}
}

func conflictTable() table[ledger.Conflict] {
	return table[ledger.Conflict]{
		name:  "conflicts",
		head:  []string{"conflict", "event", "ticket", "state", "announced", "certain", "ordered", "note", "side", "gate", "time", "clock", "claim", "outage"},
		lines: csvRows,
	}
}

func recordTable() table[ledger.RecordReport] {
	return table[ledger.RecordReport]{
		name: "records",
		head: []string{"source", "run", "pos", "kind", "claim", "rev", "state", "reason", "event", "format", "ticket", "entry",
			"time", "clock", "at", "gate", "lane", "alone", "type", "detail", "subject", "version"},
		lines: func(r ledger.RecordReport) [][]string {
			number := func(n uint64) string { return strconv.FormatUint(n, 10) }
			return [][]string{{
				string(r.Source), r.Run.String(), number(r.Pos), r.Kind, r.Claim, number(uint64(r.Rev)), r.State, string(r.Reason),
				cell(r.Event), r.Format, r.Ticket, number(uint64(r.Entry)), r.Time, r.Clock, r.At, cell(r.Gate), cell(r.Lane),
				strconv.FormatBool(r.Alone), cell(r.Type), cell(r.Detail), cell(r.Subject), number(r.Version),
			}}
		},
	}
}

func auditTable() table[audit.Line] {
	return table[audit.Line]{
		name: "audit",
		head: []string{"n", "time", "by", "key", "method", "path", "digest", "nonce", "status", "problem", "prev", "hash"},
		lines: func(l audit.Line) [][]string {
			return [][]string{{
				strconv.FormatUint(l.N, 10), l.Time, cell(l.By), l.Key, l.Method, l.Path, l.Digest, cell(l.Nonce),
				strconv.Itoa(l.Status), l.Problem, l.Prev, l.Hash,
			}}
		},
	}
}

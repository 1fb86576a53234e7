package ledgerhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"admitone/internal/audit"
	"admitone/internal/ledger"
	"admitone/internal/office"
)

// routes is the whole API.
func (s *Server) routes() (http.Handler, error) {
	paths, err := s.paths()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, m := range paths {
		mux.Handle(path, m)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(notFound, "there is nothing at %q", r.URL.Path).write(w)
	})
	return secured(s.recovered(oneSpelling(mux))), nil
}

// oneSpelling refuses addresses that a router would guess at: a path that is not in
// its shortest form, a query with broken escapes.
func oneSpelling(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.EscapedPath(); path.Clean(p) != p {
			problem(notFound, "there is nothing at %q", r.URL.Path).write(w)
			return
		}
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
			problem(badRequest, "the query cannot be read: %v", err).write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// paths is the map of the API. Reads take a bearer key of the scope read, all
// that changes something is signed; the page, its description and /healthz are
// open, and the page asks for a key before it shows anything.
func (s *Server) paths() (map[string]methods, error) {
	page, err := page()
	if err != nil {
		return nil, err
	}
	metrics, err := s.metrics()
	if err != nil {
		return nil, err
	}
	return map[string]methods{
		"/{$}":                                 {"GET": page},
		"/healthz":                             {"GET": s.healthz},
		"/metrics":                             {"GET": metrics},
		"/openapi.yaml":                        {"GET": description},
		"/v1/conflicts":                        {"GET": s.conflicts()},
		"/v1/conflicts.csv":                    {"GET": s.conflictsCSV()},
		"/v1/conflicts/{id}":                   {"GET": s.get(s.conflict)},
		"/v1/conflicts/{id}/acknowledge":       {"POST": s.post(ScopeConflicts, s.acknowledge)},
		"/v1/alarms":                           {"GET": pages(s, s.opt.Ledger.Alarms, func(l []ledger.AlarmReport, next string) any { return AlarmPage{l, next} })},
		"/v1/audit":                            {"GET": pages(s, s.auditLog, func(l []audit.Line, next string) any { return AuditPage{l, next} })},
		"/v1/records":                          {"GET": pages(s, s.opt.Ledger.Records, func(l []ledger.RecordReport, next string) any { return RecordPage{l, next} })},
		"/v1/late":                             {"GET": pages(s, s.opt.Ledger.Late, func(l []ledger.LateRecord, next string) any { return LatePage{l, next} })},
		"/v1/export/conflicts":                 {"GET": export(s, s.opt.Ledger.Conflicts, conflictTable())},
		"/v1/export/records":                   {"GET": export(s, s.opt.Ledger.Records, recordTable())},
		"/v1/export/audit":                     {"GET": export(s, s.auditLog, auditTable())},
		"/v1/gates":                            {"GET": pages(s, s.gateList, func(l []ledger.Gate, next string) any { return GateList{l, next} }), "POST": s.post(ScopeGates, s.addGate)},
		"/v1/gates/{name}/{action}":            {"POST": s.post(ScopeGates, s.changeGate)},
		"/v1/gates/{device}/records":           {"POST": s.upload(ScopeGates, maxBody, exported, s.importRecords)},
		"/v1/enrolment":                        {"GET": s.get(s.enrolment)},
		"/v1/stats":                            {"GET": s.get(s.stats)},
		"/v1/verdicts":                         {"GET": s.get(s.verdicts)},
		"/v1/claims":                           {"POST": s.claim},
		"/v1/claims/{claim}/annul":             {"POST": s.annul},
		"/v1/orders":                           {"GET": s.selling(s.orders), "POST": s.once(EndpointOrders, s.sell)},
		"/v1/orders.csv":                       {"GET": s.ordersCSV},
		"/v1/orders/{id}":                      {"GET": s.selling(s.order)},
		"/v1/orders/{id}/refund":               {"POST": s.once(EndpointRefunds, s.refund)},
		"/v1/tickets/{id}":                     {"GET": s.get(s.ticket)},
		"/v1/tickets/{id}/qr.png":              {"GET": s.qrCode},
		"/v1/revocations":                      {"POST": s.post(ScopeRevoke, s.revoke)},
		"/v1/releases":                         {"POST": s.post(ScopeRevoke, s.release)},
		"/v1/programme":                        {"GET": s.get(s.programme), "POST": s.post(ScopeProgramme, s.pushProgramme), "PUT": s.post(ScopeProgramme, s.pushProgramme)},
		"/v1/events/{event}/close":             {"POST": s.post(ScopeProgramme, s.closeEvent)},
		"/v1/codes/{event}":                    {"POST": s.upload(ScopeProgramme, maxCodes, codeList, s.putCodes)},
		"/v1/webhooks/{source}":                {"POST": s.webhook},
		"/v1/webhooks/{source}/orders/{order}": {"GET": s.selling(s.shopOrder)},
		"/v1/deliveries":                       {"GET": s.get(s.deliveries)},
		"/v1/deliveries/{endpoint}/{id}/retry": {"POST": s.post(ScopeAdmin, s.retry)},
	}, nil
}

// secured sets the header fields that belong to every answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// healthz tells that the ledger reads its store.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	_, p := s.stats(r)
	s.answer(w, http.StatusOK, map[string]string{"status": "ok"}, p)
}

// outcome turns an error of the ledger into a problem: what the caller can
// change is told, anything else is logged.
func (s *Server) outcome(doing string, err error) *Problem {
	var p *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	case errors.Is(err, ledger.ErrUnknown):
		return s.internal(doing, err)
	case errors.Is(err, office.ErrCursor):
		return problem(badRequest, "after is no cursor that this list gave").about("after")
	case errors.Is(err, ledger.ErrOther):
		return problem(claimReused, "%s; nothing was changed: another ticket needs another claim id", told(err))
	case errors.Is(err, ledger.ErrNotFound):
		return problem(notFound, "%s", told(err))
	case errors.Is(err, ledger.ErrTaken), errors.Is(err, ledger.ErrDone), errors.Is(err, ledger.ErrLate):
		return problem(notNow, "%s", told(err))
	case errors.Is(err, ledger.ErrInvalid):
		return problem(invalid, "%s", told(err))
	}
	return s.internal(doing, err)
}

// told is the text of an error for people: what the ledger joined from several
// lines stays readable as one.
func told(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
}

// cursor reads ?after= and ?limit= of a list.
func cursor(r *http.Request) (after string, limit int, p *Problem) {
	q := r.URL.Query()
	limit = defaultPage
	if text := q.Get("limit"); text != "" {
		if _, err := fmt.Sscanf(text+"\n", "%d\n", &limit); err != nil || limit < 1 || limit > maxPage {
			return "", 0, problem(badRequest, "limit is a number from 1 to %d", maxPage).about("limit")
		}
	}
	return q.Get("after"), limit, nil
}

// Pages of lists.
const (
	defaultPage = 100
	maxPage     = 1000
)

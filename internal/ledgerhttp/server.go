package ledgerhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"admitone/internal/strictjson"
	"admitone/internal/ticket"
)

// Limits of requests, so that none costs the others anything.
const (
	maxHeader = 16 << 10
	maxBody   = 1 << 20   // of most writes
	maxCodes  = 64 << 20  // of a code list: a million hashes of 32 hex digits, with room for JSON
	bodyRate  = 512 << 10 // bytes a second that a body longer than usual must come with
	maxConns  = 4096      // at a time; more wait to be accepted
)

// times are how long the parts of a request may take.
type times struct{ header, body, read, write, idle, stop time.Duration }

func usualTimes() times {
	return times{
		header: 5 * time.Second, body: 10 * time.Second,
		read: 2 * time.Minute, write: 2 * time.Minute, // a code list over a slow uplink, a long export
		idle: 2 * time.Minute, stop: 5 * time.Second,
	}
}

// Options of a server. Ledger, Now and Log are required.
type Options struct {
	Ledger  Ledger
	Now     func() time.Time
	Log     *slog.Logger
	Callers []Caller // at first: see SetAccess
	Signers []Signer // at first
	Limits  Limits

	Office   Office   // nil: nothing is sold here
	Policies Policies // of the endpoints that answer a repeat by configuration
	Sources  []Source // who may send webhooks
	Shop     Shop     // what webhooks do; nil: nobody may send any
	Outbox   Outbox   // who is told by webhooks; nil: nobody

	Enrolment Enrolment // what new devices are told
}

// Server answers the API and the page.
type Server struct {
	opt     Options
	handler http.Handler
	access  atomic.Pointer[Access]
	times   times

	callers, failures *pace
	hooks             hooks
}

// New makes a server; it starts nothing.
func New(o Options) (*Server, error) {
	if o.Ledger == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("make HTTP server: ledger, clock and log are required")
	}
	s := &Server{opt: o, times: usualTimes(), hooks: hooks{n: map[hookCount]uint64{}}}
	s.callers, s.failures = newPaces(o.Limits)
	s.SetAccess(Access{Callers: o.Callers, Signers: o.Signers})
	h, err := s.routes()
	if err != nil {
		return nil, fmt.Errorf("make HTTP server: %w", err)
	}
	s.handler = h
	return s, nil
}

// Handler is the whole API with the page.
func (s *Server) Handler() http.Handler { return s.handler }

// Run serves on a listener, which may be a TLS one, until ctx is done; requests
// under way get a few seconds to end. It closes the listener.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.handler, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: s.times.header, ReadTimeout: s.times.read, WriteTimeout: s.times.write, IdleTimeout: s.times.idle,
		ErrorLog: slog.NewLogLogger(s.opt.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(netutil.LimitListener(l, maxConns)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.times.stop)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		srv.Close()
	}
	<-ended
	return nil
}

// methods answers one path; a method that it does not have is a problem.
type methods map[string]http.HandlerFunc

// ServeHTTP picks the method's handler; HEAD is GET without its body.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h, ok := m[method]; ok {
		h(w, r)
		return
	}
	var have []string
	for name := range m {
		have = append(have, name)
	}
	slices.Sort(have)
	w.Header().Set("Allow", strings.Join(have, ", "))
	problem(badMethod, "%s is not possible here; %s is", r.Method, strings.Join(have, ", ")).write(w)
}

// recovered turns a panic of one request into a problem of that request.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				s.internal("answer "+r.Method, fmt.Errorf("panic: %v", v)).write(w)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// get makes a handler for a read: a key of the scope read, and an answer in JSON.
func (s *Server) get(fn func(r *http.Request) (any, *Problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, p := s.bearer(r, ScopeRead); p != nil {
			p.write(w)
			return
		}
		v, p := fn(r)
		s.answer(w, http.StatusOK, v, p)
	}
}

// echoed is the answer of an earlier request, for its retry.
type echoed struct{ of any }

// answer sends a value in JSON, or the problem.
func (s *Server) answer(w http.ResponseWriter, status int, v any, p *Problem) {
	if p == nil {
		if e, ok := v.(echoed); ok {
			w.Header().Set("Idempotency-Replayed", "true")
			v = e.of
		}
		b, err := json.Marshal(v)
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			w.Write(append(b, '\n'))
			return
		}
		p = s.internal("encode answer", err)
	}
	p.write(w)
}

// internal logs what could not be found out, and gives the problem that says no
// more than that.
func (s *Server) internal(doing string, err error) *Problem {
	s.opt.Log.Error("http request", "doing", doing, "err", err)
	return problem(internal, "nothing was changed that was not confirmed; the ledger's log says more: try again")
}

// readBody reads at most limit bytes. One that trickles in is given up after a
// time that a slow uplink keeps, so that nobody holds many connections for nothing.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *Problem) {
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(s.times.body + time.Duration(limit/bodyRate)*time.Second)) // a recorder in a test has none
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, problem(tooLarge, "at most %d bytes are accepted here", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem(tooSlow, "the body did not come in time")
	case err != nil:
		return nil, problem(badRequest, "the body ended early")
	}
	c.SetReadDeadline(time.Time{}) // it would end the work that comes now
	return b, nil
}

// strict decodes a JSON body into v. The problem names the field.
func strict(body []byte, v any) *Problem {
	err := strictjson.Decode(body, v)
	if err == nil {
		return nil
	}
	p := problem(badRequest, "the body is not the JSON that belongs here: %v", err)
	var wrong *strictjson.Error
	if errors.As(err, &wrong) {
		p.Field = wrong.Field
	}
	return p
}

// jsonOnly refuses a body that says it is something else. A request that does not
// say, and curl's -d, which says it is a form, are taken by what they hold.
func jsonOnly(r *http.Request) *Problem {
	text := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(text)
	charset, ok := params["charset"]
	switch {
	case text == "":
		return nil
	case err != nil, media != "application/json" && media != "application/x-www-form-urlencoded", ok && !strings.EqualFold(charset, "utf-8"):
		return problem(mediaType, "send application/json in UTF-8").about("Content-Type")
	}
	return nil
}

// stamp gives a time as the API writes it; the zero time is empty.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(ticket.TimeFormat)
}

// Package control is the gate's local socket: status, the stream of verdicts,
// modes and staff actions, as HTTP and JSON over a Unix socket, and the client
// that gatectl is. Whoever may open the socket's file may do all of it; there is
// no other check, and no network.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"admitone/internal/ticket"
)

// Gate is what the socket works on.
type Gate interface {
	// Status gives what GET /status answers, to be written as JSON.
	Status(ctx context.Context) (any, error)
	SetMode(ctx context.Context, m ticket.GateMode, by string) error
	Annul(ctx context.Context, id ticket.ClaimID, by string) error
	// Export writes all records of the gate's own that it still holds, signed by its
	// device's key, as ticket.BatchWriter does.
	Export(ctx context.Context, w io.Writer) error
	// Sim sets what a simulated device does. It returns an error where the device
	// is a real one.
	Sim(ctx context.Context, s Sim) error
}

// Sim is one setting of a simulated turnstile.
type Sim struct {
	Lane    string `json:"lane,omitempty"`    // "": the first
	Passage string `json:"passage,omitempty"` // auto, never, twice, now or exit
	Input   string `json:"input,omitempty"`   // a wired input, as in ready …
	Active  bool   `json:"active,omitempty"`  // … and its state
}

type modeRequest struct {
	Mode ticket.GateMode `json:"mode"`
	By   string          `json:"by"`
}

type annulRequest struct {
	Claim ticket.ClaimID `json:"claim"`
	By    string         `json:"by"`
}

type failure struct {
	Error string `json:"error"`
}

// watcherBacklog is how many verdicts a slow watcher may be behind before it
// loses some: the gate never waits for one.
const watcherBacklog = 256

// maxBody bounds a request's body: they are all a line long.
const maxBody = 16 << 10

// Server serves one gate.
type Server struct {
	path string
	gate Gate
	log  *slog.Logger

	mu       sync.Mutex
	watchers map[chan []byte]bool
}

// New makes a server on a socket's path. It starts nothing.
func New(path string, g Gate, log *slog.Logger) (*Server, error) {
	if len(path) > 100 {
		// The kernel's limit for a socket's path is 107 bytes (unix(7)).
		return nil, fmt.Errorf("control socket %s: the path is %d bytes, at most 100: set control to a shorter one", path, len(path))
	}
	return &Server{path: path, gate: g, log: log, watchers: map[chan []byte]bool{}}, nil
}

// Verdict gives one verdict to everybody who watches. It does not block.
func (s *Server) Verdict(v ticket.Verdict) {
	line, err := json.Marshal(v)
	if err != nil {
		s.log.Error("encode verdict", "err", err)
		return
	}
	line = append(line, '\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		select {
		case w <- line:
		default:
		}
	}
}

// Run serves until ctx ends. A socket that an earlier process left is replaced;
// one that somebody answers on is an error.
func (s *Server) Run(ctx context.Context) error {
	ln, err := listen(s.path)
	if err != nil {
		return fmt.Errorf("open control socket: %w", err)
	}
	srv := &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		srv.Close()
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve control socket: %w", err)
	}
	<-stopped
	return nil
}

func listen(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		c, dialErr := net.DialTimeout("unix", path, time.Second)
		if dialErr == nil {
			c.Close()
			return nil, fmt.Errorf("%s: another gated serves it", path)
		}
		if rmErr := os.Remove(path); rmErr != nil {
			return nil, err
		}
		if ln, err = net.Listen("unix", path); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(path, 0o660); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		st, err := s.gate.Status(r.Context())
		answer(w, st, err)
	})
	mux.HandleFunc("POST /mode", func(w http.ResponseWriter, r *http.Request) {
		var m modeRequest
		if read(w, r, &m) {
			answer(w, struct{}{}, s.gate.SetMode(r.Context(), m.Mode, m.By))
		}
	})
	mux.HandleFunc("POST /annul", func(w http.ResponseWriter, r *http.Request) {
		var a annulRequest
		if read(w, r, &a) {
			answer(w, struct{}{}, s.gate.Annul(r.Context(), a.Claim, a.By))
		}
	})
	mux.HandleFunc("POST /sim", func(w http.ResponseWriter, r *http.Request) {
		var m Sim
		if read(w, r, &m) {
			answer(w, struct{}{}, s.gate.Sim(r.Context(), m))
		}
	})
	mux.HandleFunc("GET /verdicts", s.watch)
	mux.HandleFunc("GET /export", s.export)
	return mux
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		write(w, http.StatusBadRequest, failure{Error: "read request: " + err.Error()})
		return false
	}
	return true
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		write(w, http.StatusConflict, failure{Error: err.Error()})
		return
	}
	write(w, http.StatusOK, v)
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// watch streams verdicts, one JSON object a line, until the watcher leaves.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	lines := make(chan []byte, watcherBacklog)
	s.mu.Lock()
	s.watchers[lines] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, lines)
		s.mu.Unlock()
	}()
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	if rc.Flush() != nil {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-lines:
			if _, err := w.Write(line); err != nil || rc.Flush() != nil {
				return
			}
		}
	}
}

// export streams the gate's own records. What goes wrong on the way cuts the stream
// off, which its reader sees: the last part says that it is the last.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := s.gate.Export(r.Context(), w); err != nil {
		s.log.Error("export records", "err", err)
		panic(http.ErrAbortHandler)
	}
}

// Client talks to a gate's socket.
type Client struct {
	path string
	http http.Client
}

// NewClient makes a client of the socket at a path. It connects with the first call.
func NewClient(path string) *Client {
	return &Client{path: path, http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}}
}

// Status gives the gate's status as JSON.
func (c *Client) Status(ctx context.Context) (json.RawMessage, error) {
	return c.do(ctx, http.MethodGet, "/status", nil)
}

// SetMode changes the gate's mode on somebody's word.
func (c *Client) SetMode(ctx context.Context, m ticket.GateMode, by string) error {
	_, err := c.do(ctx, http.MethodPost, "/mode", modeRequest{Mode: m, By: by})
	return err
}

// Annul takes an admission back on somebody's word.
func (c *Client) Annul(ctx context.Context, id ticket.ClaimID, by string) error {
	_, err := c.do(ctx, http.MethodPost, "/annul", annulRequest{Claim: id, By: by})
	return err
}

// Sim sets a simulated device.
func (c *Client) Sim(ctx context.Context, s Sim) error {
	_, err := c.do(ctx, http.MethodPost, "/sim", s)
	return err
}

// Export copies all records of the gate's own to w.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	res, err := c.open(ctx, http.MethodGet, "/export", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("export records: the gate answers %s", res.Status)
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("export records: %w", err)
	}
	return nil
}

// Watch calls f with each verdict, as its line of JSON, until ctx ends, the gate
// stops or f returns an error.
func (c *Client) Watch(ctx context.Context, f func(line []byte) error) error {
	res, err := c.open(ctx, http.MethodGet, "/verdicts", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for d := json.NewDecoder(res.Body); ; {
		var line json.RawMessage
		switch err := d.Decode(&line); {
		case ctx.Err() != nil || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("watch gate: %w", err)
		}
		if err := f(line); err != nil {
			return err
		}
	}
}

func (c *Client) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var b io.Reader
	if body != nil {
		j, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		b = strings.NewReader(string(j))
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gate"+path, b)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the gate at %s: %w (is gated running, and may you open its socket?)", c.path, err)
	}
	return res, nil
}

func (c *Client) do(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	res, err := c.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the gate's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		var f failure
		if json.Unmarshal(b, &f) != nil || f.Error == "" {
			f.Error = res.Status
		}
		return nil, errors.New(f.Error)
	}
	return b, nil
}

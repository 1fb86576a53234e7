package ledgerhttp

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"admitone/internal/office"
	"admitone/internal/shop"
	"admitone/internal/strictjson"
	"admitone/internal/ticket"
	"admitone/internal/webhook"
)

// Source is a system that sends webhooks, signed as Standard Webhooks says.
type Source struct {
	Name    string                  // the last part of the path
	Secrets func() []webhook.Secret // asked at each request, so that they may change

	// Kept: the sender signs once and keeps the timestamp over its retries. An id
	// is then remembered for as long as the signature is good, and Policy.Remember
	// does not count.
	Kept   bool
	Policy Policy // refuse; RepeatStatus is 200 or 409
}

// Shop is what the API needs of package shop; *shop.Shop has it.
type Shop interface {
	Receive(ctx context.Context, m shop.Message) (shop.Reply, error)
	Find(ctx context.Context, source, order string) (office.Account, error)
}

// WebhookReply is the answer to POST /v1/webhooks/{source}. It has no tokens of
// tickets: senders show and keep what they are answered. Those are read with a key
// of the scope orders, under our id of the order or the shop's.
type WebhookReply struct {
	Status    shop.Status `json:"status"`               // accepted, ignored (of no type that does something) or duplicate
	FirstSeen string      `json:"first_seen,omitempty"` // duplicate: when the id came first
	Order     string      `json:"order,omitempty"`      // accepted: our id of the order
	Tickets   []ticket.ID `json:"tickets,omitempty"`    // accepted: which were minted, or are void now
}

// maxHook bounds the body of a webhook, which is read before its sender is known.
const maxHook = 256 << 10

// webhook is POST /v1/webhooks/{source}.
func (s *Server) webhook(w http.ResponseWriter, r *http.Request) {
	source, p := s.source(r.PathValue("source"))
	if p != nil {
		p.write(w)
		return
	}
	v, p := s.receive(w, r, source)
	s.hooks.count(source.Name, v, p)
	s.answer(w, http.StatusOK, v, s.failed(r, p))
}

func (s *Server) source(name string) (Source, *Problem) {
	i := slices.IndexFunc(s.opt.Sources, func(c Source) bool { return c.Name == name })
	if i < 0 || s.opt.Shop == nil {
		return Source{}, problem(notFound, "no source %q is configured", name)
	}
	return s.opt.Sources[i], nil
}

func (s *Server) receive(w http.ResponseWriter, r *http.Request, source Source) (out WebhookReply, p *Problem) {
	if p = jsonOnly(r); p != nil {
		return out, p
	}
	body, p := s.readBody(w, r, maxHook)
	if p != nil {
		return out, p
	}
	m, err := webhook.Verify(r.Header, body, source.Secrets(), s.opt.Now())
	switch {
	case errors.Is(err, webhook.ErrTime):
		return out, problem(stale, "%v", err)
	case err != nil:
		return out, problem(badSignature, "%v", err)
	}
	if p = s.paced("webhook " + source.Name); p != nil {
		return out, p
	}
	digest := sha256.Sum256(body)
	in := shop.Message{Source: source.Name, ID: m.ID, Body: body, Policy: source.Policy.Policy, Digest: digest[:]}
	if source.Kept {
		// For longer than the signature is good, as with nonces: a ledger's clock
		// that is set back meanwhile opens no window.
		in.Until = m.At.Add(webhook.Window + nonceMargin)
	}
	reply, err := s.opt.Shop.Receive(r.Context(), in)
	if p = s.shopProblem(err); p != nil {
		return out, p
	}
	if reply.Changed {
		s.opt.Log.Warn("a webhook's id came with another body before; nothing was done", "source", source.Name, "id", m.ID)
	}
	out = WebhookReply{Status: reply.Status, FirstSeen: stamp(reply.FirstSeen), Order: reply.Order, Tickets: reply.Tickets}
	if reply.Status == shop.Duplicate && source.Policy.RepeatStatus != http.StatusOK {
		p = problem(repeated, "this webhook came at %s and was executed; nothing was done now", out.FirstSeen)
		p.FirstSeen = out.FirstSeen
	}
	return out, p
}

// shopProblem tells why a message was not taken.
func (s *Server) shopProblem(err error) *Problem {
	var wrong *strictjson.Error
	if !errors.As(err, &wrong) {
		return s.officeProblem("webhook", err)
	}
	p := problem(badRequest, "the body is not the JSON that belongs here: %v", wrong)
	p.Field = wrong.Field
	return p
}

// shopOrder is GET /v1/webhooks/{source}/orders/{order}: the order by the shop's
// own id.
func (s *Server) shopOrder(r *http.Request) (any, *Problem) {
	source, p := s.source(r.PathValue("source"))
	if p != nil {
		return nil, p
	}
	a, err := s.opt.Shop.Find(r.Context(), source.Name, r.PathValue("order"))
	return orderOf(a), s.officeProblem("read order of a shop", err)
}

// hookCount is what a webhook came to, for the metrics.
type hookCount struct{ source, outcome string }

// hooks counts webhooks since the start of the process.
type hooks struct {
	mu sync.Mutex
	n  map[hookCount]uint64
}

func (h *hooks) count(source string, v WebhookReply, p *Problem) {
	outcome := string(v.Status)
	switch {
	case p == nil || p.is(repeated):
	case p.Status == http.StatusUnauthorized:
		outcome = "unauthorized"
	case p.Status >= http.StatusInternalServerError:
		outcome = "failed"
	default:
		outcome = "refused"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n[hookCount{source, outcome}]++
}

func (h *hooks) all() map[hookCount]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.n)
}

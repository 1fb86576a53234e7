package ledgerhttp

import (
	"net/http"
	"strings"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// Claim is the body of POST /v1/claims: a ticket that was shown to a hand-held
// scanner. A retry has the same claim id; another ticket needs another one.
type Claim struct {
	Token string `json:"token"` // the ticket's text
	Claim string `json:"claim"` // chosen by the client: 1 to 128 printable ASCII characters without spaces
}

const maxClaimID = 128

// claim answers POST /v1/claims. The caller stands at a place.
func (s *Server) claim(w http.ResponseWriter, r *http.Request) {
	caller, p := s.scanner(r)
	if p == nil {
		p = jsonOnly(r)
	}
	if p != nil {
		p.write(w)
		return
	}
	body, p := s.readBody(w, r, maxBody)
	var c Claim
	if p == nil {
		p = strict(body, &c)
	}
	if p == nil {
		p = c.check()
	}
	if p != nil {
		p.write(w)
		return
	}
	h, err := s.opt.Ledger.Admit(r.Context(), ledger.Handheld{Caller: caller.Name, Place: caller.Place, Claim: c.Claim, Token: c.Token})
	s.handled(w, http.StatusCreated, h, s.outcome("claim ticket", err))
}

// annul answers POST /v1/claims/{claim}/annul.
func (s *Server) annul(w http.ResponseWriter, r *http.Request) {
	caller, p := s.scanner(r)
	if p != nil {
		p.write(w)
		return
	}
	h, err := s.opt.Ledger.Annul(r.Context(), caller.Name, r.PathValue("claim"))
	s.handled(w, http.StatusOK, h, s.outcome("annul claim", err))
}

// scanner finds the caller of a hand-held's request.
func (s *Server) scanner(r *http.Request) (Caller, *Problem) {
	c, p := s.bearer(r, ScopeClaims)
	if p == nil && c.Place == "" {
		p = problem(forbidden, "the caller %q stands at no place; the ledger's configuration says where", c.Name)
	}
	return c, p
}

func (c Claim) check() *Problem {
	var p *Problem
	switch {
	case c.Token == "":
		p = problem(badRequest, "token is required: the ticket's text")
		p.Field = "token"
	case c.Claim == "" || len(c.Claim) > maxClaimID || strings.ContainsFunc(c.Claim, func(r rune) bool { return r <= ' ' || r > '~' }):
		p = problem(badRequest, "claim is 1 to %d printable ASCII characters without spaces, new for each ticket that is shown", maxClaimID)
		p.Field = "claim"
	}
	return p
}

// handled sends what a hand-held's request came to.
func (s *Server) handled(w http.ResponseWriter, status int, h ledger.Handled, p *Problem) {
	switch {
	case p != nil:
	case h.Reason == ticket.OK:
		if h.Replayed {
			w.Header().Set(replayedField, "true")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		w.Write(append(h.Body, '\n'))
		return
	case h.Reason == ticket.AlreadyUsed:
		p = problem(alreadyUsed, "this ticket was used at %s", h.First.Place)
	case h.Reason == ticket.InProgress:
		p = problem(inProgress, "this ticket is being let in at %s: send the same claim again", h.First.Place)
		p.RetryAfter = 1
	default:
		p = problem(notLetIn, "this ticket is refused: %s", h.Reason)
	}
	p.Reason = h.Reason
	if h.First != nil {
		p.FirstGate, p.FirstSeen = h.First.Place, nanos(h.First.Time)
	}
	p.write(w)
}

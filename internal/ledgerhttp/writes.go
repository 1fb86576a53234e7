package ledgerhttp

import (
	"bytes"
	"mime"
	"net/http"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func (s *Server) acknowledge(q write) (any, *Problem) {
	var b Acknowledgement
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	c, err := s.opt.Ledger.Acknowledge(q.Context(), q.PathValue("id"), b.Note, q.By)
	return c, s.outcome("acknowledge conflict", err)
}

func (s *Server) revoke(q write) (any, *Problem) {
	var b Revocation
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	format, p := parseFormat(b.Format)
	if p != nil {
		return nil, p
	}
	if b.Revoked == nil || b.Ticket == (ticket.ID{}) {
		return nil, problem(badRequest, "ticket and revoked are required, as in {\"ticket\":\"…\",\"revoked\":true}")
	}
	b.Format = format.String()
	err := s.opt.Ledger.Revoke(q.Context(), format, b.Ticket, *b.Revoked, q.By)
	return b, s.outcome("revoke ticket", err)
}

func (s *Server) release(q write) (any, *Problem) {
	var b Release
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	if b.Claim.IsZero() {
		return nil, problem(badRequest, "claim is required: GATE/RUN/POSITION, as verdicts and conflicts name it")
	}
	err := s.opt.Ledger.Release(q.Context(), b.Claim, q.By, b.Note)
	return b, s.outcome("release claim", err)
}

func (s *Server) pushProgramme(q write) (any, *Problem) {
	var prog ticket.Programme
	if p := strict(q.Body, &prog); p != nil {
		return nil, p
	}
	version, err := s.opt.Ledger.PushProgramme(q.Context(), prog)
	return Pushed{Version: version}, s.outcome("push programme", err)
}

func (s *Server) closeEvent(q write) (any, *Problem) {
	event := q.PathValue("event")
	err := s.opt.Ledger.CloseEvent(q.Context(), event)
	return Closed{Event: event}, s.outcome("close event", err)
}

func (s *Server) putCodes(q write) (any, *Problem) {
	hashes, p := readCodes(q.Header.Get("Content-Type"), q.Body)
	if p != nil {
		return nil, p
	}
	if len(hashes) > ledger.MaxCodes {
		return nil, problem(tooLarge, "%d codes; a list has at most %d", len(hashes), ledger.MaxCodes)
	}
	version, err := s.opt.Ledger.PutCodes(q.Context(), q.PathValue("event"), hashes)
	return Pushed{Version: version, Codes: ticket.NewCodeList(hashes).Len()}, s.outcome("put codes", err)
}

// codeList takes the two forms of a code list.
func codeList(r *http.Request) *Problem {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "text/plain" && media != "application/json" {
		return problem(mediaType, "send text/plain with one code hash a line, or application/json")
	}
	return nil
}

// readCodes reads a list of code hashes in either form. A line that is no hash
// is told by its number, and nothing of the list is taken.
func readCodes(contentType string, body []byte) ([]ticket.ID, *Problem) {
	if media, _, _ := mime.ParseMediaType(contentType); media != "text/plain" {
		var c Codes
		p := strict(body, &c)
		return c.Hashes, p
	}
	hashes := make([]ticket.ID, 0, len(body)/33)
	n := 0
	for line := range bytes.Lines(body) {
		n++
		text := bytes.TrimRight(line, "\r\n")
		if len(text) == 0 {
			continue
		}
		id, err := ticket.ParseID(string(text))
		if err != nil {
			return nil, problem(invalid, "line %d is no code hash: want 32 lower-case hex digits", n)
		}
		hashes = append(hashes, id)
	}
	return hashes, nil
}

func (s *Server) addGate(q write) (any, *Problem) {
	b := NewGate{Role: ledger.RoleGate}
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	g, err := s.opt.Ledger.EnrolGate(q.Context(), b.Place, b.Key, b.Role)
	return g, s.outcome("enrol gate", err)
}

// changeGate is POST /v1/gates/{place or device}/swap, revoke or lost.
func (s *Server) changeGate(q write) (any, *Problem) {
	name := q.PathValue("name")
	var g ledger.GateEntry
	var err error
	switch action := q.PathValue("action"); action {
	case "swap":
		var b Spare
		if p := strict(q.Body, &b); p != nil {
			return nil, p
		}
		g, err = s.opt.Ledger.SwapGate(q.Context(), name, b.Key)
	case "revoke":
		g, err = s.opt.Ledger.RevokeGate(q.Context(), name)
	case "lost":
		g, err = s.opt.Ledger.LostGate(q.Context(), name)
	default:
		return nil, problem(notFound, "a gate can be swapped, revoked or lost, not %q", action)
	}
	return g, s.outcome("change gate", err)
}

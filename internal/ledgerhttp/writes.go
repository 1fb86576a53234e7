package ledgerhttp

import (
	"bytes"
	"mime"
	"net/http"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func (s *Server) acknowledge(q write) (job, *Problem) {
	var b Acknowledgement
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	return func(w *ledger.Within) (any, error) {
		c, again, err := w.Acknowledge(q.PathValue("id"), b.Note, q.By)
		if again {
			return echoed{c}, err
		}
		return c, err
	}, nil
}

func (s *Server) revoke(q write) (job, *Problem) {
	var b Revocation
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	format, p := parseFormat(b.Format)
	if p != nil {
		return nil, p
	}
	if b.Revoked == nil || b.Ticket == (ticket.ID{}) {
		missing := "ticket"
		if b.Ticket != (ticket.ID{}) {
			missing = "revoked"
		}
		return nil, problem(badRequest, "ticket and revoked are required, as in {\"ticket\":\"…\",\"revoked\":true}").about(missing)
	}
	b.Format = format.String()
	return func(w *ledger.Within) (any, error) { return b, w.Revoke(format, b.Ticket, *b.Revoked, q.By) }, nil
}

func (s *Server) release(q write) (job, *Problem) {
	var b Release
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	if b.Claim.IsZero() {
		return nil, problem(badRequest, "claim is required: GATE/RUN/POSITION, as verdicts and conflicts name it").about("claim")
	}
	return func(w *ledger.Within) (any, error) { return b, w.Release(b.Claim, q.By, b.Note) }, nil
}

func (s *Server) pushProgramme(q write) (job, *Problem) {
	var prog ticket.Programme
	if p := strict(q.Body, &prog); p != nil {
		return nil, p
	}
	return func(w *ledger.Within) (any, error) {
		version, err := w.PushProgramme(prog)
		return Pushed{Version: version}, err
	}, nil
}

func (s *Server) closeEvent(q write) (job, *Problem) {
	event := q.PathValue("event")
	return func(w *ledger.Within) (any, error) { return Closed{Event: event}, w.CloseEvent(event) }, nil
}

func (s *Server) putCodes(q write) (job, *Problem) {
	hashes, p := readCodes(q.Header.Get("Content-Type"), q.Body)
	if p != nil {
		return nil, p
	}
	if len(hashes) > ledger.MaxCodes {
		return nil, problem(tooLarge, "%d codes; a list has at most %d", len(hashes), ledger.MaxCodes)
	}
	list := ticket.NewCodeList(hashes)
	return func(w *ledger.Within) (any, error) {
		version, err := w.PutCodes(q.PathValue("event"), list)
		return Pushed{Version: version, Codes: list.Len()}, err
	}, nil
}

// codeList takes the two forms of a code list.
func codeList(r *http.Request) *Problem {
	switch media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case err == nil && media == "text/plain":
		return nil
	case err == nil && media == "application/json":
		return jsonOnly(r)
	}
	return problem(mediaType, "send text/plain with one code hash a line, or application/json").about("Content-Type")
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

func (s *Server) addGate(q write) (job, *Problem) {
	b := NewGate{Role: ledger.RoleGate}
	if p := strict(q.Body, &b); p != nil {
		return nil, p
	}
	return func(w *ledger.Within) (any, error) { return w.EnrolGate(b.Place, b.Key, b.Role) }, nil
}

// changeGate is POST /v1/gates/{place or device}/swap, revoke or lost.
func (s *Server) changeGate(q write) (job, *Problem) {
	name := q.PathValue("name")
	switch action := q.PathValue("action"); action {
	case "swap":
		var b Spare
		if p := strict(q.Body, &b); p != nil {
			return nil, p
		}
		return func(w *ledger.Within) (any, error) { return w.SwapGate(name, b.Key) }, nil
	case "revoke":
		return func(w *ledger.Within) (any, error) { return w.RevokeGate(name) }, nil
	case "lost":
		return func(w *ledger.Within) (any, error) { return w.LostGate(name) }, nil
	default:
		return nil, problem(notFound, "a gate can be swapped, revoked or lost, not %q", action)
	}
}

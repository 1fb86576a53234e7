package ledgerhttp

import (
	"bytes"
	"net/http"
	"strconv"

	"admitone/internal/qr"
	"admitone/internal/ticket"
)

// The size of a QR code's module, in pixels.
const (
	qrScale    = 8
	maxQRScale = 32
)

// qrCode answers GET /v1/tickets/{id}/qr.png of a ticket that was sold here. It is
// the ticket itself: a key of the scope read is not enough.
func (s *Server) qrCode(w http.ResponseWriter, r *http.Request) {
	text, scale, p := s.soldTicket(r)
	if p != nil {
		p.write(w)
		return
	}
	var b bytes.Buffer
	if err := qr.PNG(&b, text, scale); err != nil {
		s.internal("draw QR code", err).write(w)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.Header().Set("Cache-Control", "private, no-store")
	w.Write(b.Bytes())
}

func (s *Server) soldTicket(r *http.Request) (text string, scale int, p *Problem) {
	if _, p := s.bearer(r, ScopeOrders); p != nil {
		return "", 0, p
	}
	id, err := ticket.ParseID(r.PathValue("id"))
	if err != nil {
		return "", 0, problem(badRequest, "%v", err).about("id")
	}
	scale = qrScale
	if given := r.URL.Query().Get("scale"); given != "" {
		if scale, err = strconv.Atoi(given); err != nil || scale < 1 || scale > maxQRScale {
			return "", 0, problem(badRequest, "scale is a number from 1 to %d: the pixels of a module", maxQRScale).about("scale")
		}
	}
	if s.opt.Office == nil {
		return "", 0, problem(notFound, noOffice)
	}
	t, found, err := s.opt.Office.Ticket(r.Context(), id)
	switch {
	case err != nil:
		return "", 0, s.internal("read ticket", err)
	case !found:
		return "", 0, problem(notFound, "no ticket %s was sold here; the text of one that was made elsewhere is with its maker", id)
	}
	return t.Token, scale, nil
}

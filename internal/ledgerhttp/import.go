package ledgerhttp

import (
	"context"
	"mime"
	"net/http"
	"net/url"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// exportType is the media type of a part of a file of exported records.
const exportType = "application/vnd.admitone.records"

func exported(r *http.Request) *Problem {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != exportType {
		return problem(mediaType, "send %s: one part of a file that `gatectl export` wrote", exportType).about("Content-Type")
	}
	return nil
}

// importRecords is POST /v1/gates/{device}/records: records of a gate that has no
// network, as its device signed them.
func (s *Server) importRecords(q write) (job, *Problem) {
	device := ticket.Source(q.PathValue("device"))
	return func(w *ledger.Within) (any, error) { return w.Import(device, q.Body) }, nil
}

// Import sends one part of a file that a gate exported.
func (c *Client) Import(ctx context.Context, device ticket.Source, signed []byte) (out ledger.Imported, err error) {
	return out, c.send(ctx, "/v1/gates/"+url.PathEscape(string(device))+"/records", exportType, signed, &out)
}

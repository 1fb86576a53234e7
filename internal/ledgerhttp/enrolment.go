package ledgerhttp

import (
	"context"
	"net/http"
)

// Enrolment is GET /v1/enrolment: what a new device's enrolment file says besides
// its own key and place. Nothing in it is secret.
type Enrolment struct {
	Brokers      []string `json:"brokers"`        // where gates connect
	Leaf         string   `json:"leaf,omitempty"` // where venues' brokers connect
	BrokerKeys   []string `json:"broker_keys"`    // SHA-256 of their SubjectPublicKeyInfo; none: without TLS, on this host
	ProgrammeKey string   `json:"programme_key"`  // 64 hex digits: Ed25519
}

func (s *Server) enrolment(*http.Request) (any, *Problem) { return s.opt.Enrolment, nil }

// Enrolment gives what new devices need to know of this ledger.
func (c *Client) Enrolment(ctx context.Context) (out Enrolment, err error) {
	return out, c.get(ctx, "/v1/enrolment", &out)
}

package ledgerhttp

import (
	"context"
	"iter"

	"admitone/internal/audit"
)

// Audit gives one page of the audit log, oldest line first; limit 0 is the server's
// default.
func (c *Client) Audit(ctx context.Context, after string, limit int) (out AuditPage, err error) {
	return out, c.get(ctx, pagePath("/v1/audit", after, limit), &out)
}

// AllAudit gives the whole audit log, oldest line first. It ends with the first
// error.
func (c *Client) AllAudit(ctx context.Context) iter.Seq2[audit.Line, error] {
	return all(func(after string) ([]audit.Line, string, error) {
		p, err := c.Audit(ctx, after, maxPage)
		return p.Lines, p.Next, err
	})
}

package pgstore

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func claimArgs(id ticket.ClaimID, more ...any) []any {
	return append([]any{string(id.Gate), id.Run.String(), num(id.Pos)}, more...)
}

func unitArgs(u ticket.Unit) []any {
	return []any{u.Event, int16(u.Format), u.Ticket[:], int64(u.Entry)}
}

// unitColumns receive a unit.
type unitColumns struct {
	event  string
	format int16
	ticket []byte
	entry  int64
}

func (c *unitColumns) into() []any { return []any{&c.event, &c.format, &c.ticket, &c.entry} }

func (c *unitColumns) unit() (u ticket.Unit, err error) {
	if len(c.ticket) != len(u.Ticket) {
		return u, fmt.Errorf("read unit: ticket of %d bytes", len(c.ticket))
	}
	u = ticket.Unit{Event: c.event, Format: ticket.Format(c.format), Entry: uint32(c.entry)}
	copy(u.Ticket[:], c.ticket)
	return u, nil
}

// PutClaim is ledger.Tx.PutClaim. A claim stands with one unit: where another
// transaction has just stored it with another one, the primary key has this one run
// again, and it sees that.
func (t *tx) PutClaim(r ledger.ClaimRow) error {
	args := append(claimArgs(r.Claim.ID), unitArgs(r.Claim.Unit)...)
	args = append(args, r.Run.String(), num(r.Pos), r.Since, string(r.Answer))
	return t.write(`insert into claim (gate, run, pos, event, format, ticket, entry, record_run, record_pos, since, answer)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		on conflict (event, format, ticket, entry, gate, run, pos)
		do update set record_run = $8, record_pos = $9, since = $10, answer = $11`, args...)
}

const claimsSQL = `select c.gate, c.run, c.pos, c.record_run, c.record_pos, c.since, c.answer, r.raw
	from claim c left join record r on r.source = c.gate and r.run = c.record_run and r.pos = c.record_pos where `

// Claims is ledger.Tx.Claims. Whether the ticket is revoked is what the ledger asks
// next.
func (t *tx) Claims(u ticket.Unit) ([]ledger.ClaimRow, error) {
	var b pgx.Batch
	t.lock(&b, ticketLock(u.Event, u.Format, u.Ticket))
	t.ahead(&b, ticket.RevokeSubject(u.Format, u.Ticket))
	return t.claims(&b, claimsSQL+`c.event = $1 and c.format = $2 and c.ticket = $3 and c.entry = $4
		order by c.gate, c.run, c.pos`, unitArgs(u)...)
}

// TicketClaims is ledger.Tx.TicketClaims.
func (t *tx) TicketClaims(event string, f ticket.Format, id ticket.ID) ([]ledger.ClaimRow, error) {
	var b pgx.Batch
	t.lock(&b, ticketLock(event, f, id))
	return t.claims(&b, claimsSQL+`c.event = $1 and c.format = $2 and c.ticket = $3
		order by c.entry, c.gate, c.run, c.pos`, event, int16(f), id[:])
}

func (t *tx) claims(b *pgx.Batch, sql string, args ...any) ([]ledger.ClaimRow, error) {
	rows, err := all(t, b, scanClaim, sql, args...)
	return rows, wrap("read claims", err)
}

// scanClaim reads a row with the record that it points at, which has all of the
// claim.
func scanClaim(row pgx.Row) (r ledger.ClaimRow, err error) {
	var gate, answer string
	var of, in run
	var pos, at num
	if err := row.Scan(&gate, &of, &pos, &in, &at, &r.Since, &answer, &r.Raw); err != nil {
		return r, err
	}
	id := ticket.ClaimID{Gate: ticket.Source(gate), Run: ticket.Run(of), Pos: uint64(pos)}
	r.Run, r.Pos, r.Answer = ticket.Run(in), uint64(at), ticket.Answer(answer)
	rec, err := ticket.DecodeRecord(r.Raw)
	if err != nil || rec.Claim == nil || rec.Claim.ID != id {
		return r, fmt.Errorf("claim %s points at %s/%d, which is no record of it", id, r.Run, r.Pos)
	}
	r.Claim = *rec.Claim
	return r, nil
}

// ClaimUnit is ledger.Tx.ClaimUnit. Whether the claim was released is asked next.
func (t *tx) ClaimUnit(id ticket.ClaimID) (u ticket.Unit, ok bool, err error) {
	var b pgx.Batch
	t.ahead(&b, ticket.ReleaseSubject(id))
	var c unitColumns
	ok, err = t.one(&b, "select event, format, ticket, entry from claim where gate = $1 and run = $2 and pos = $3",
		claimArgs(id), c.into()...)
	if err == nil && ok {
		u, err = c.unit()
	}
	return u, ok && err == nil, wrap("find claim", err)
}

// PutDue is ledger.Tx.PutDue.
func (t *tx) PutDue(at int64, id ticket.ClaimID, u ticket.Unit) error {
	return t.write(`insert into due (gate, run, pos, event, format, ticket, entry, at) values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (at, gate, run, pos) do update set event = $4, format = $5, ticket = $6, entry = $7`,
		append(append(claimArgs(id), unitArgs(u)...), at)...)
}

// DropDue is ledger.Tx.DropDue.
func (t *tx) DropDue(at int64, id ticket.ClaimID) error {
	return t.write("delete from due where gate = $1 and run = $2 and pos = $3 and at = $4", claimArgs(id, at)...)
}

// Due is ledger.Tx.Due.
func (t *tx) Due(before int64, limit int) ([]ledger.DueRow, error) {
	rows, err := all(t, &pgx.Batch{}, scanDue, `select at, gate, run, pos, event, format, ticket, entry from due
		where at < $1 order by at, gate, run, pos limit $2`, before, limit)
	return rows, wrap("list due claims", err)
}

func scanDue(row pgx.Row) (r ledger.DueRow, err error) {
	var gate string
	var of run
	var pos num
	var c unitColumns
	if err := row.Scan(append([]any{&r.At, &gate, &of, &pos}, c.into()...)...); err != nil {
		return r, err
	}
	r.Claim = ticket.ClaimID{Gate: ticket.Source(gate), Run: ticket.Run(of), Pos: uint64(pos)}
	r.Unit, err = c.unit()
	return r, err
}

// DropClaims is ledger.Tx.DropClaims.
func (t *tx) DropClaims(event string, limit int) (int, error) {
	rows, err := t.claims(&pgx.Batch{}, claimsSQL+"c.event = $1 order by c.gate, c.run, c.pos limit $2", event, limit)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		id := r.Claim.ID
		if err := t.write("delete from claim where gate = $1 and run = $2 and pos = $3", claimArgs(id)...); err != nil {
			return 0, err
		}
		if err := t.DropDue(r.Since+int64(r.Claim.Lease), id); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

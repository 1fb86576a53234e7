package ledgerhttp

import (
	"context"
	"encoding/json"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// Ledger is what the API needs of package ledger; *ledger.Ledger has it. Its
// errors are told apart by ledger.ErrNotFound, ErrTaken, ErrInvalid and ErrDone.
type Ledger interface {
	Conflicts(ctx context.Context, after string, limit int) (page []ledger.Conflict, next string, err error)
	Conflict(ctx context.Context, id string) (ledger.Conflict, error)
	Alarms(ctx context.Context, after string, limit int) (page []ledger.AlarmReport, next string, err error)
	Gates(ctx context.Context) ([]ledger.Gate, error)
	Stats(ctx context.Context) (ledger.Stats, error)
	Ticket(ctx context.Context, f ticket.Format, id ticket.ID) (ledger.TicketReport, error)
	Verdicts() []json.RawMessage
	Programme(ctx context.Context) (ticket.Programme, error)

	Records(ctx context.Context, after string, limit int) (page []ledger.RecordReport, next string, err error)
	Late(ctx context.Context, after string, limit int) (page []ledger.LateRecord, next string, err error)

	// View reads rows that are not the ledger's.
	View(ctx context.Context, fn func(ledger.Tx) error) error

	// Within is where admin writes are done.
	Within(ctx context.Context, fn func(*ledger.Within) error) error

	Admit(ctx context.Context, h ledger.Handheld) (ledger.Handled, error)
	Annul(ctx context.Context, caller, claim string) (ledger.Handled, error)
}

// The answers and bodies of the API, as server and client have them. Times are
// ticket.TimeFormat.
type (
	// ConflictPage is GET /v1/conflicts: oldest announcement first. Next goes on
	// after the last one as ?after=; it is empty where there is none.
	ConflictPage struct {
		Conflicts []ledger.Conflict `json:"conflicts"`
		Next      string            `json:"next"`
	}

	// AlarmPage is GET /v1/alarms, in the same way.
	AlarmPage struct {
		Alarms []ledger.AlarmReport `json:"alarms"`
		Next   string               `json:"next"`
	}

	// GateList is GET /v1/gates.
	GateList struct {
		Gates []ledger.Gate `json:"gates"` // by place
		Next  string        `json:"next"`
	}

	// Stats is GET /v1/stats.
	Stats struct {
		Time string `json:"time"` // the ledger's clock
		ledger.Stats
	}

	// VerdictList is GET /v1/verdicts: the last 100, newest first.
	VerdictList struct {
		Verdicts []ticket.Verdict `json:"verdicts"`
	}

	// Acknowledgement is the body of POST /v1/conflicts/{id}/acknowledge.
	Acknowledgement struct {
		Note string `json:"note"`
	}

	// Revocation is the body of POST /v1/revocations, and its answer.
	Revocation struct {
		Ticket  ticket.ID `json:"ticket"`
		Format  string    `json:"format,omitempty"` // "a1", the default, or "code"
		Revoked *bool     `json:"revoked"`          // false takes a revocation back
	}

	// Release is the body of POST /v1/releases, and its answer.
	Release struct {
		Claim ticket.ClaimID `json:"claim"`
		Note  string         `json:"note"`
	}

	// Pushed is the answer to a programme or a code list.
	Pushed struct {
		Version uint64 `json:"version"`
		Codes   int    `json:"codes,omitempty"` // how many the list has, each counted once
	}

	// Closed is the answer to POST /v1/events/{id}/close.
	Closed struct {
		Event string `json:"event"`
	}

	// Codes is the body of POST /v1/codes/{event} as JSON; as text/plain it is one
	// hash a line. It replaces the event's list.
	Codes struct {
		Hashes []ticket.ID `json:"hashes"`
	}

	// NewGate is the body of POST /v1/gates.
	NewGate struct {
		Place string `json:"place"`
		Key   string `json:"key"`            // the device's public NKey
		Role  string `json:"role,omitempty"` // "gate", the default, or "broker"
	}

	// Spare is the body of POST /v1/gates/{place}/swap.
	Spare struct {
		Key string `json:"key"` // the spare's public NKey
	}
)

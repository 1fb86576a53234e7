package ledgerhttp

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"admitone/internal/audit"
	"admitone/internal/ledger"
	"admitone/internal/office"
)

// Further lists, in pages as conflicts are.
type (
	// AuditPage is GET /v1/audit: the admin writes, oldest first.
	AuditPage struct {
		Lines []audit.Line `json:"lines"`
		Next  string       `json:"next"`
	}

	// RecordPage is GET /v1/records: by source, run and position.
	RecordPage struct {
		Records []ledger.RecordReport `json:"records"`
		Next    string                `json:"next"`
	}

	// LatePage is GET /v1/late: records that came after their event was pruned.
	LatePage struct {
		Late []ledger.LateRecord `json:"late"`
		Next string              `json:"next"`
	}
)

// pages makes a handler for a list in pages.
func pages[T any](s *Server, list func(ctx context.Context, after string, limit int) ([]T, string, error), page func([]T, string) any) http.HandlerFunc {
	return s.get(func(r *http.Request) (any, *Problem) {
		after, limit, p := cursor(r)
		if p != nil {
			return nil, p
		}
		rows, next, err := list(r.Context(), after, limit)
		if errors.Is(err, ledger.ErrInvalid) {
			err = office.ErrCursor // the limit was looked at
		}
		if p := s.outcome("list "+r.URL.Path, err); p != nil {
			return nil, p
		}
		if rows == nil {
			rows = []T{}
		}
		return page(rows, next), nil
	})
}

// auditLog gives lines of the audit log, after a cursor.
func (s *Server) auditLog(ctx context.Context, after string, limit int) (lines []audit.Line, next string, err error) {
	err = s.opt.Ledger.View(ctx, func(tx ledger.Tx) error {
		rows, err := rowsOf(tx)
		if err != nil {
			return err
		}
		lines, next, err = audit.Page(rows, after, limit)
		return err
	})
	return lines, next, err
}

// rowsOf gives the rows of the API in a transaction of the ledger.
func rowsOf(tx ledger.Tx) (office.Tx, error) {
	rows, ok := tx.(office.Tx)
	if !ok {
		return nil, errors.New("the ledger's store has no rows for the API")
	}
	return rows, nil
}

// gateList gives devices by place and device, after a cursor: all there are come
// from memory and few rows, so the page is cut from the whole list.
func (s *Server) gateList(ctx context.Context, after string, limit int) ([]ledger.Gate, string, error) {
	if last, err := hex.DecodeString(after); err != nil || after != "" && !bytes.Contains(last, []byte{0}) {
		return nil, "", office.ErrCursor
	}
	all, err := s.opt.Ledger.Gates(ctx)
	if err != nil {
		return nil, "", err
	}
	key := func(g ledger.Gate) string { return hex.EncodeToString([]byte(g.Place + "\x00" + string(g.Device))) }
	at, _ := slices.BinarySearchFunc(all, after, func(g ledger.Gate, after string) int {
		if k := key(g); after == "" || strings.Compare(k, after) > 0 {
			return 1
		}
		return -1
	})
	page := all[at:min(len(all), at+limit)]
	if len(page) == 0 {
		return page, after, nil
	}
	return page, key(page[len(page)-1]), nil
}

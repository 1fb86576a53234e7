package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"admitone/internal/ledgerstore/pgschema"
	"admitone/internal/ledgerstore/tables"
)

// Errors of Import. Nothing of it stays where it returns one.
var (
	ErrNotEmpty  = errors.New("the database has rows already")         // returned for a target that is in use
	ErrDifferent = errors.New("what was written reads back otherwise") // returned where a table's rows are not those that came
)

// Import fills an empty database with rows: all of them in one transaction, or none.
// Before it commits it reads every table back and compares counts and sums; it gives
// them by table. source calls its argument for each row, and returns its error.
func Import(ctx context.Context, o Options, source func(func(table string, r tables.Row) error) error) (sums map[string]tables.Sum, err error) {
	c, err := configure(o)
	if err != nil {
		return nil, err
	}
	cc := c.ConnConfig
	for _, timeout := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		delete(cc.RuntimeParams, timeout) // it takes as long as it takes
	}
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := o.check(ctx, conn); err != nil {
		return nil, err
	}
	if err := pgschema.Up(ctx, cc, o.Log); err != nil {
		return nil, err
	}
	in := &importer{ctx: ctx, tables: map[string]tables.Table{}, rows: map[string][][]any{}, sums: map[string]tables.Sum{}}
	for _, t := range tables.All() {
		in.tables[t.Name] = t
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		in.tx = tx
		return in.run(source)
	})
	if err != nil {
		return nil, fmt.Errorf("import rows: %w", err)
	}
	if _, err := conn.Exec(ctx, "analyze"); err != nil {
		return nil, fmt.Errorf("count rows for the planner: %w", err)
	}
	return in.sums, nil
}

// importer is one import under way.
type importer struct {
	ctx    context.Context
	tx     pgx.Tx
	tables map[string]tables.Table
	rows   map[string][][]any // by table, not written yet
	sums   map[string]tables.Sum
}

const importBatch = 2000 // rows of one COPY

func (in *importer) run(source func(func(string, tables.Row) error) error) error {
	if _, err := in.tx.Exec(in.ctx, "select pg_advisory_xact_lock($1)", lockKey(lockFeeds)); err != nil {
		return err
	}
	if err := in.empty(); err != nil {
		return err
	}
	if err := source(in.add); err != nil {
		return err
	}
	for _, t := range tables.All() {
		if err := in.flush(t); err != nil {
			return err
		}
	}
	for _, t := range tables.All() {
		if err := in.compare(t); err != nil {
			return err
		}
	}
	_, err := in.tx.Exec(in.ctx, "update state set version = version + 1")
	return err
}

func (in *importer) empty() error {
	var used []string
	for _, t := range tables.All() {
		var some bool
		if err := in.tx.QueryRow(in.ctx, "select exists (select from "+t.Name+")").Scan(&some); err != nil {
			return err
		}
		if some {
			used = append(used, t.Name)
		}
	}
	if used != nil {
		return fmt.Errorf("%w: in %s; make a new one", ErrNotEmpty, strings.Join(used, ", "))
	}
	return nil
}

func (in *importer) add(table string, r tables.Row) error {
	t, known := in.tables[table]
	if !known {
		return fmt.Errorf("row of no known table %q", table)
	}
	sum := in.sums[table]
	if err := sum.Add(r); err != nil {
		return err
	}
	in.sums[table] = sum
	values := make([]any, len(r))
	for i, v := range r {
		if n, is := v.(uint64); is {
			v = num(n)
		}
		values[i] = v
	}
	if in.rows[table] = append(in.rows[table], values); len(in.rows[table]) < importBatch {
		return nil
	}
	return in.flush(t)
}

func (in *importer) flush(t tables.Table) error {
	rows := in.rows[t.Name]
	delete(in.rows, t.Name)
	_, err := in.tx.CopyFrom(in.ctx, pgx.Identifier{t.Name}, t.Columns, pgx.CopyFromRows(rows))
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Detail != "" {
		return fmt.Errorf("write rows of %s: %w (%s)", t.Name, err, pe.Detail)
	}
	return wrap("write rows of "+t.Name, err)
}

// compare reads a table back.
func (in *importer) compare(t tables.Table) error {
	rows, err := in.tx.Query(in.ctx, "select "+strings.Join(t.Columns, ", ")+" from "+t.Name)
	if err != nil {
		return wrap("read rows of "+t.Name, err)
	}
	defer rows.Close()
	var got tables.Sum
	for rows.Next() {
		r, err := values(rows)
		if err != nil {
			return wrap("read rows of "+t.Name, err)
		}
		if err := got.Add(r); err != nil {
			return err
		}
	}
	if want := in.sums[t.Name]; rows.Err() == nil && got != want {
		return fmt.Errorf("%s has %d rows with the sum %s, and %d with %s came: %w", t.Name, got.Rows, &got, want.Rows, &want, ErrDifferent)
	}
	return wrap("read rows of "+t.Name, rows.Err())
}

// values gives a row in the types of package tables.
func values(rows pgx.Rows) (tables.Row, error) {
	fields := rows.FieldDescriptions()
	row, into := make(tables.Row, len(fields)), make([]any, len(fields))
	for i, f := range fields {
		switch f.DataTypeOID {
		case pgtype.NumericOID:
			into[i] = new(num)
		case pgtype.ByteaOID:
			into[i] = new([]byte)
		case pgtype.BoolOID:
			into[i] = new(bool)
		case pgtype.TextOID:
			into[i] = new(string)
		default:
			into[i] = new(*int64)
		}
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	for i, v := range into {
		switch v := v.(type) {
		case *num:
			row[i] = uint64(*v)
		case *[]byte:
			if *v != nil {
				row[i] = *v
			}
		case *bool:
			row[i] = *v
		case *string:
			row[i] = *v
		case **int64:
			if *v != nil {
				row[i] = **v
			}
		}
	}
	return row, nil
}

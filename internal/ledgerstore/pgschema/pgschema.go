// Package pgschema holds the ledger's schema on PostgreSQL, step by step, and
// brings a database to the newest one.
package pgschema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var steps embed.FS

// ErrNewer is returned for a database that a newer ledgerd has brought further than
// this one knows.
var ErrNewer = errors.New("the database has a newer schema than this ledgerd knows")

// Wait for another process that migrates: every second, this often.
const waitSeconds = 120

// Up takes the steps that the database has not seen yet. Several processes may call
// it at once: a session lock lets one go first, and the others find nothing to do.
func Up(ctx context.Context, c *pgx.ConnConfig, log *slog.Logger) (err error) {
	db := stdlib.OpenDB(*c)
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, waitSeconds))
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, steps,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"))
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	done, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	for _, step := range done {
		log.Info("database migrated", "version", step.Source.Version, "took", step.Duration)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	if sources := p.ListSources(); have > sources[len(sources)-1].Version {
		return fmt.Errorf("migrate database: at version %d: %w", have, ErrNewer)
	}
	return nil
}

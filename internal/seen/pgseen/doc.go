// Package pgseen keeps the seen table in PostgreSQL: as a part of a transaction
// (Bind, On), so that a row and the work it stands for are one commit, and as a
// front that lets the claims of many callers at once be one statement (Front).
//
// The unique constraint decides, under READ COMMITTED: an insert with ON CONFLICT
// DO NOTHING waits for whoever inserts the same key, and a look in a statement of
// its own then sees the winner's row. Isolation levels above add nothing to that
// but failures to retry.
//
// The table is made by the migrations of package pgstore. Keys are bytes, since
// identifiers are the clients' and may hold anything; times are Unix nanoseconds,
// which timestamptz would cut to microseconds.
package pgseen

// Package pgtest starts a real PostgreSQL for tests: Debian's, in a temporary
// folder, on a unix socket that nobody else can see. One server serves a test
// binary, every test gets a database of its own; a test that stops or kills the
// server starts one for itself.
package pgtest

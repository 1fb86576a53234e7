// Package pgstore keeps the ledger's tables in PostgreSQL, so that several ledger
// processes work on one database. It implements ledger.Store and office.Books and
// passes the suites in ledgertest; package pgschema has the tables.
//
// # Who waits for whom
//
// A transaction is READ COMMITTED, and what keeps it right are locks of the
// transaction (pg_advisory_xact_lock) and unique constraints:
//
//   - What belongs to one thing is locked when it is first read to be changed: a
//     run by Stream, a ticket with its claims by Claims, a conflict, an alarm and a
//     row of the office by their ids.
//   - What belongs to nobody alone (subjects, the ledgers' own feeds, the flags of
//     events) is changed by a transaction that runs alone. Every other one holds the
//     shared lock "feeds" from its start. The first such write in it has it undone
//     and run again with the exclusive lock from the start: taking that lock in the
//     middle would let two wait for each other.
//   - Counts of events are added to, in one of several parts.
//   - The seen table decides by its primary key (package pgseen).
//
// Where PostgreSQL undoes a transaction (a deadlock, a constraint that another was
// faster to use up) its function runs again.
//
// Since subjects and flags only change alone, what a process has read of them holds
// for everybody until the version in the table state moves: it is kept in memory,
// and a transaction learns with its first statement whether it still holds.
//
// # Round trips
//
// Statements are pipelined. A write waits for the next read, or for the commit, and
// goes with it (tx.Later, tx.Send): a transaction pays for its reads and one way
// more, and its reads see its writes.
package pgstore

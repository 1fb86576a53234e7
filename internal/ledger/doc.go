// Package ledger is the centre: it answers asks, keeps every gate's records,
// derives conflicts and alarms from them, and writes the feeds that gates follow.
//
// One idea carries it: a claim is a register with one writer, its gate. The
// ledger never writes a claim's state. It answers, once and for good, and it
// derives: who holds a unit, which claim was first and what is a conflict are
// functions of the set of records (package ticket), so that duplicates,
// reordering and repeated uploads need no rules of their own.
//
// Every call that writes is one transaction of the Store, and nothing leaves the
// process before it returned: replies, feed records, log lines and counters come
// after the commit.
package ledger

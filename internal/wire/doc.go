// Package wire carries records, asks and heads between gates and the ledger: the
// forms of the messages, their subjects, the state of the link, uploads and
// receipts, the feed among peers, and catching up after an outage.
//
// It runs on Conn, which is NATS (Dial; this is the only package that imports
// nats.go) or the network of package wiretest, which breaks on demand and runs
// under testing/synctest.
//
// Nothing is queued here for later: the gate's store is the queue, the ledger's
// store is the log, and what counts as delivered is what the ledger says it has.
// A message may be lost, repeated or late without harm: every record has a
// position within its run, heads show what is missing, and it is fetched.
package wire

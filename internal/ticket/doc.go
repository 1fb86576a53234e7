// Package ticket is the domain: what a ticket, a unit, a claim record and a
// verdict are, and the pure functions that gates, the ledger and the simulation
// all decide with: merging records, who holds a unit, which claim was first,
// whether a turnstile may open, and what is a conflict.
//
// Nothing here reads a clock, a file or a network. The only outside code is the
// CBOR and COSE codecs.
package ticket

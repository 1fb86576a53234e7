// Package broker is the NATS server within ledgerd: the hub beside the ledger, to
// which gates and brokers of venues connect, or a venue's broker, a leaf of the
// hub whose gates go on hearing each other when the uplink is cut.
//
// It is core NATS: nothing is stored, and a lost message is no loss (package
// wire). What it guarantees is who speaks: a device proves its NKey on a nonce and
// may publish below its own subjects only, so that a message's subject proves its
// author.
//
// This is the only package that imports nats-server; gated does not link it.
package broker

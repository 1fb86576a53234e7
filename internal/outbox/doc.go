// Package outbox tells other systems what happened here: signed messages
// (Standard Webhooks) to configured endpoints, each delivered at least once or
// given up visibly.
//
// A message becomes a row per endpoint in the transaction of what it tells, so
// that neither can be without the other. It keeps its id and its bytes over all
// tries; timestamp and signature are new each time, as receivers check them. A
// due row is leased before it is sent, so that of several ledgers on one store one
// sends it; one that dies leaves a lease that ends.
package outbox

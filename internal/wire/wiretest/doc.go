// Package wiretest is a network in memory for package wire: links with delay,
// loss, duplicates, reordering, cuts and hangs, which run under testing/synctest;
// and the suite that it and NATS both pass.
package wiretest

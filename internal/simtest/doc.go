// Package simtest simulates the whole system in one process and in virtual time:
// the real gate loop, gate store, wire and ledger, on stores in memory that keep
// only what was committed, over a network in memory that delays, loses, repeats
// and cuts. People and turnstiles are simulated, and what physically happened
// (which relay moved, who went through) is noted beside what the records say.
//
// A test builds a World, lets things happen, heals everything and calls check,
// which holds the invariants of the claim protocol against the notes. The seed
// decides the schedule, the network and the people; only the order of what happens
// at one and the same instant is left to the scheduler.
//
// The package holds tests alone.
package simtest

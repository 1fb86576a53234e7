// Package lab is the rehearsal stage behind scripts/lab: a ledger, a venue's
// broker and gates with simulated turnstiles, as the real programs with generated
// keys and configuration, in the background on free ports of this host, with
// links that can be cut, processes that can be killed and clocks that can be
// wrong. Integrators rehearse on it, and so do the project's own tests.
//
// The gates connect to the venue's broker (ledgerd with role broker), which is a
// leaf of the ledger's (ledgerd with role all), each link through a proxy of the
// lab's: gate K - broker, and broker - ledger.
package lab

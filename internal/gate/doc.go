// Package gate is the admission loop: the only place that decides whether a
// turnstile opens. One goroutine owns all of its state; readers, the turnstile,
// the wire and the operator hand it what happened and it answers with verdicts,
// records and signals.
//
// Nothing opens before the claim is on disk. Whatever cannot be found out leaves
// the turnstile shut.
package gate

//go:build race

package simtest

// The race detector makes everything ten times as dear, and needs fewer rounds to
// see a race.
const rounds, seeds, crashes = 1_000, 40, 100

//go:build !race

package simtest

// How often the long tests do what they do.
const rounds, seeds, crashes = 10_000, 300, 200

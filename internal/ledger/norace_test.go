//go:build !race

package ledger_test

// rounds of two claims at once.
const rounds = 10_000

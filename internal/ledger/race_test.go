//go:build race

package ledger_test

// rounds of two claims at once. The race detector makes each round ten times as
// dear and needs fewer of them to see a race.
const rounds = 1_000

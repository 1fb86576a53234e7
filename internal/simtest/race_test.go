//go:build race

package simtest

import "time"

// The race detector makes everything ten times as dear, and needs fewer rounds to
// see a race.
const rounds, seeds, crashes, perPath, manySteps, histories = 500, 40, 100, 1, 10, 30

// budget is the real time that random schedules may take, where no number of seeds
// is named.
const budget = 20 * time.Second

//go:build !race

package simtest

import "time"

// How often the long tests do what they do.
const rounds, seeds, crashes, perPath, manySteps, histories = 10_000, 1_000, 200, 2, 60, 100

// budget is the real time that random schedules may take, where no number of seeds
// is named.
const budget = time.Minute

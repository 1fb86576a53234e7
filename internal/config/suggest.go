package config

import (
	"slices"
	"strings"
)

// suggest says what a key that nobody knows may have been meant as.
func suggest(name string, fields map[string]int) string {
	known := make([]string, 0, len(fields))
	for k := range fields {
		known = append(known, k)
	}
	slices.Sort(known)
	if best := Nearest(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "the keys here are " + strings.Join(known, ", ")
}

// Nearest gives the known name that a misspelt one was most likely meant as, or
// "" where none is near. Of names equally near it is the first.
func Nearest(name string, known []string) string {
	best, dist := "", 1+max(1, len(name)/4) // a letter or two in a word, no other word
	for _, k := range known {
		if d := distance(name, k); d < dist {
			best, dist = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, change, or swap with their
// neighbour (optimal string alignment).
func distance(a, b string) int {
	var before, last []int // the rows of the two letters before
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

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
	best, dist := "", 1+max(1, len(name)/4) // a letter or two in a word, no other word
	for _, k := range known {
		if d := distance(name, k); d < dist {
			best, dist = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "the keys here are " + strings.Join(known, ", ")
}

// distance is the number of letters to insert, delete or change (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Package rooms holds one test: the table of which package may import which. That
// table is the architecture of the project; a new import that it does not allow is
// a decision, to be made there.
package rooms

// Command scanbench measures the reader on a corpus of real pictures, and its time
// beside gozxing's:
//
//	go run ./internal/scan/scanbench [-unread] CORPUS
//
// CORPUS holds frames/SET/NAME.png and truth.jsonl, a line for each picture:
// {"set","name","texts","truth"} and what other readers read of it.
//
// A picture counts as read when one of its texts is among those that are accepted
// for it. "one" is the first frame alone, "all" is the same frame shown until the
// ladder of attempts has come round.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	unread := flag.Bool("unread", false, "name the pictures that are not read")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: scanbench [-unread] CORPUS")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *unread); err != nil {
		fmt.Fprintln(os.Stderr, "scanbench:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, corpus string, unread bool) error {
	all, err := load(corpus)
	if err != nil {
		return err
	}
	t := newTally()
	for _, p := range all {
		if err := t.add(p, corpus); err != nil {
			return err
		}
	}
	t.print(w, unread)
	return printSpeed(w)
}

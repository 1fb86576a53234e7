// Command gen draws testdata/frames and writes the demo key beside it. Run it from
// the top of the repository when what is drawn, or how, has changed:
//
//	go run ./internal/pictures/gen
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"admitone/internal/pictures/demo"
	"admitone/internal/ticket"
)

func main() {
	if err := run("testdata"); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes into dir, which must exist.
func run(dir string) error {
	key, err := ticket.FormatPrivateKey(demo.Key())
	if err != nil {
		return err
	}
	frames, err := demo.Frames()
	if err != nil {
		return err
	}
	index, err := demo.Index(frames)
	if err != nil {
		return err
	}
	files := map[string][]byte{"demo-key.pem": key, filepath.Join("frames", "frames.json"): index}
	for _, f := range frames {
		if files[filepath.Join("frames", f.File)], err = f.JPEG(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "frames"), 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

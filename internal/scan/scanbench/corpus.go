package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// entry is a line of truth.jsonl.
type entry struct {
	Set   string   `json:"set"`
	Name  string   `json:"name"`
	Texts []string `json:"texts"`
	Truth string   `json:"truth"` // "none": nobody knows, "empty": there is no code

	Others map[string]bool `json:"-"` // who else read it: zxing_cpp_hd, …
}

func (e *entry) UnmarshalJSON(data []byte) error {
	type plain entry
	if err := json.Unmarshal(data, (*plain)(e)); err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	e.Others = map[string]bool{}
	for key, value := range all {
		if read, is := value.(bool); is {
			e.Others[key] = read
		}
	}
	return nil
}

func load(corpus string) (all []entry, err error) {
	f, err := os.Open(filepath.Join(corpus, "truth.jsonl"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("truth.jsonl, line %d: %w", len(all)+1, err)
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

// accepts tells whether a text is one of those that the picture is to give, by
// their printable ASCII without white space; where that is short, by all of it.
func (e *entry) accepts(text string) bool { return slices.Contains(e.Texts, spelled(text)) }

func spelled(text string) string {
	var out []byte
	for _, c := range []byte(text) {
		if c > ' ' && c < 0x7f {
			out = append(out, c)
		}
	}
	if len(out) >= 3 {
		return string(out)
	}
	return "U:" + norm.NFC.String(text)
}

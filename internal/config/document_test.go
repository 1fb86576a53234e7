package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type document struct {
	Version uint64    `toml:"version"`
	On      bool      `toml:"on"`
	At      time.Time `toml:"at"`
	Parts   []struct {
		Name string `toml:"name"`
	} `toml:"parts"`
}

func load(t *testing.T, text string, check func() error) (document, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "d")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var d document
	err := LoadDocument(file, &d, check)
	if err == nil {
		return d, ""
	}
	var ps Problems
	if !errors.As(err, &ps) {
		t.Fatalf("%T, want Problems", err)
	}
	return d, strings.ReplaceAll(err.Error(), file+": ", "")
}

func TestTOMLAndJSONAreOneDocument(t *testing.T) {
	a, wrong := load(t, "version = 3\non = true\nat = 2026-11-30T18:00:00Z\n[[parts]]\nname = \"x\"\n", nil)
	if wrong != "" {
		t.Fatal(wrong)
	}
	b, wrong := load(t, ` {"version": 3, "on": true, "at": "2026-11-30T18:00:00Z", "parts": [{"name": "x"}]}`, nil)
	if wrong != "" {
		t.Fatal(wrong)
	}
	if a.Version != 3 || !a.On || len(a.Parts) != 1 || a.Parts[0].Name != "x" || a.At.Unix() != 1796061600 ||
		b.Version != a.Version || b.On != a.On || !b.At.Equal(a.At) || len(b.Parts) != 1 || b.Parts[0] != a.Parts[0] {
		t.Fatalf("%+v and %+v", a, b)
	}
}

func TestDocumentProblems(t *testing.T) {
	const all = "at: AT is not a time; HINT\non: 1 is not true or false; write true or false\nparst: unknown key; did you mean parts?\nversion: -1 is not one; write a whole number, 0 or more\nsum: not right, want it right"
	check := func() error {
		return errors.Join(errors.New("version: 0, want 1"), errors.New("sum: not right, want it right"))
	}
	for name, c := range map[string]struct{ text, want string }{
		"all of TOML": {"version = -1\non = 1\nat = \"x\"\nparst = []\n",
			strings.NewReplacer("AT", `"x"`, "HINT", "write it as in 2026-11-30T18:00:00Z, without quotes").Replace(all)},
		"all of JSON": {`{"version": -1, "on": 1, "at": 7, "parst": []}`,
			strings.NewReplacer("AT", "7", "HINT", `write it as in "2026-11-30T18:00:00Z"`).Replace(all)},
		"null":        {`{"on": null}`, "on: null is not true or false; write true or false\nversion: 0, want 1\nsum: not right, want it right"},
		"broken TOML": {"version = \n", "line 1, column 11: unexpected character U+000A at start of value"},
		"cut off":     {"{\n\"version\": 1,\n\"parts\": [{", "line 3: it ends within the object"},
		"broken JSON": {"{\n\"version\": x}", "line 2: invalid character 'x' looking for beginning of value"},
		"twice":       {`{"on": true, "on": false}`, `line 1: "on" is there twice`},
		"two objects": {`{}{}`, "line 1: something stands after the object"},
		"deep":        {`{"parts": ` + strings.Repeat("[", 1000), "line 1: too many brackets within brackets"},
	} {
		if _, got := load(t, c.text, check); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
	if err := LoadDocument(filepath.Join(t.TempDir(), "none"), new(document), nil); err == nil {
		t.Error("a file that is not there is no problem")
	}
}

func TestNearest(t *testing.T) {
	known := []string{"annul", "mode", "revoke", "watch"}
	for name, want := range map[string]string{"revok": "revoke", "anul": "annul", "mod": "mode", "wathc": "watch", "lamp": "", "": ""} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
}

package lab

import (
	"os"
	"strings"
	"testing"

	"admitone/internal/config"
)

// Texts go through shells on their way to a gate's line.
func TestMintedTextsAreOneWord(t *testing.T) {
	at := layout{dir: t.TempDir()}
	if err := os.Mkdir(at.path("keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := config.EnsureKey(at.mintKey()); err != nil {
		t.Fatal(err)
	}
	texts, err := Mint(at.dir, 500, nil)
	if err != nil || len(texts) != 500 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	for _, text := range texts {
		if len(strings.Fields(text)) != 1 || strings.TrimSpace(text) != text {
			t.Errorf("a shell would change %q", text)
		}
	}
}

func TestADirectoryIsNoOption(t *testing.T) {
	for _, args := range [][]string{{"up", "-h"}, {"down", "--help"}, {"up"}, {}} {
		var out, err strings.Builder
		if code := Main(t.Context(), args, Terminal{Out: &out, Err: &err}); code != 2 || err.String() != Usage || out.Len() > 0 {
			t.Errorf("%q: exit code %d, said %q", args, code, err.String())
		}
	}
}

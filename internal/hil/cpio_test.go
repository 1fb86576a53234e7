package hil

import (
	"fmt"
	"strconv"
	"testing"
)

// unpack reads an archive as the kernel does.
func unpack(t *testing.T, b []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for at := 0; ; {
		if len(b) < at+110 || string(b[at:at+6]) != "070701" {
			t.Fatalf("no header at %d of %d", at, len(b))
		}
		var n [13]int
		for i := range n {
			v, err := strconv.ParseUint(string(b[at+6+8*i:][:8]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			n[i] = int(v)
		}
		mode, size, name := n[1], n[6], n[11]
		text := string(b[at+110:][:name-1])
		at = (at + 110 + name + 3) / 4 * 4
		if text == "TRAILER!!!" {
			return out
		}
		if _, twice := out[text]; twice {
			t.Errorf("%s stands there twice", text)
		}
		out[text] = fmt.Sprintf("%o %s", mode, b[at:at+size])
		at = (at + size + 3) / 4 * 4
	}
}

func TestArchive(t *testing.T) {
	var a archive
	a.file("/init", 0o755, []byte("abc"))
	a.file("a/b/c", 0o600, []byte("12345"))
	a.file("a/b/d", 0o644, nil)
	a.dir("a")
	got := unpack(t, a.bytes())
	want := map[string]string{"init": "100755 abc", "a": "40755 ", "a/b": "40755 ", "a/b/c": "100600 12345", "a/b/d": "100644 "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

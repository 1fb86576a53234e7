package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/internal/qr"
)

// Files that are no pictures, cut off, or of 100 megapixels are told one by one,
// and the good ones between them are read.
func TestReadGoesOnAfterBadPictures(t *testing.T) {
	m, err := qr.Image("A1:GOOD", 6)
	if err != nil {
		t.Fatal(err)
	}
	var good bytes.Buffer
	if err := png.Encode(&good, m); err != nil {
		t.Fatal(err)
	}
	large := bytes.Clone(good.Bytes())
	binary.BigEndian.PutUint32(large[16:], 10_000) // width, height, and the header's sum
	binary.BigEndian.PutUint32(large[20:], 10_000)
	binary.BigEndian.PutUint32(large[29:], crc32.ChecksumIEEE(large[12:29]))

	dir := t.TempDir()
	args := []string{"read"}
	want := []string{"neither a PNG nor a JPEG", "", "not enough", "too large", "neither", ""}
	for i, data := range [][]byte{[]byte("no picture"), good.Bytes(), good.Bytes()[:good.Len()/2], large, nil, good.Bytes()} {
		file := filepath.Join(dir, string(rune('a'+i))+".png")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	var stdout, stderr bytes.Buffer
	env := environment{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, now: time.Now}
	if code := run(t.Context(), args, env); code != 1 || stderr.Len() > 0 {
		t.Errorf("exit code %d, said %q", code, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), stdout.String())
	}
	for i, line := range lines {
		var got struct {
			File, Error string
			Texts       []string
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		readable := want[i] == ""
		if got.File != args[i+1] || readable != (len(got.Texts) == 1 && got.Texts[0] == "A1:GOOD") || !strings.Contains(got.Error, want[i]) {
			t.Errorf("line %d is %s", i, line)
		}
	}
}

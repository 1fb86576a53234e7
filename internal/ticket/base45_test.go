package ticket

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestBase45Vectors(t *testing.T) {
	// RFC 9285, sections 4.3 and 4.4.
	for plain, text := range map[string]string{
		"": "", "AB": "BB8", "Hello!!": "%69 VD92EX0", "base-45": "UJCLQE7W581", "ietf!": "QED8WEX0",
	} {
		if got := encodeBase45([]byte(plain)); got != text {
			t.Errorf("%q encodes as %q, want %q", plain, got, text)
		}
		if got, err := decodeBase45(text); err != nil || string(got) != plain {
			t.Errorf("%q decodes as %q, %v, want %q", text, got, err, plain)
		}
	}
	if got := encodeBase45([]byte{0xff, 0xff, 0xff}); got != "FGWU5" {
		t.Errorf("the largest groups encode as %q", got)
	}
	for _, bad := range []string{"GGW", ":::", "V5", "::", "A", "BB8A", "bb8", "BB8\n", "B,8", "BBÄ", "\x00\x00"} {
		if got, err := decodeBase45(bad); err == nil {
			t.Errorf("%q decodes as %x", bad, got)
		}
	}
}

func TestBase45HasOneSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		if got, err := decodeBase45(encodeBase45(b)); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%x came back as %x, %v", b, got, err)
		}
		s := rapid.StringMatching(`[0-9A-Z $%*+\-./:]{0,8}`).Draw(t, "text")
		if got, err := decodeBase45(s); err == nil && encodeBase45(got) != s {
			t.Fatalf("%q reads as %x, which is spelled %q", s, got, encodeBase45(got))
		}
	})
}

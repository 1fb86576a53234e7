package ledgerhttp

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// The request and signature of RFC 9421, appendix B.2.6, and the public key of
// B.1.4.
const rfcRequest = "POST /foo?param=Value&Pet=dog HTTP/1.1\r\n" +
	"Host: example.com\r\n" +
	"Date: Tue, 20 Apr 2021 02:07:55 GMT\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Digest: sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:\r\n" +
	"Content-Length: 18\r\n" +
	"\r\n" + `{"hello": "world"}`

const (
	rfcInput     = `sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`
	rfcSignature = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
	rfcKey       = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs="
)

func TestSignatureBaseIsThatOfTheRFC(t *testing.T) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(rfcRequest)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := httpsfv.UnmarshalDictionary([]string{rfcInput})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := d.Get("sig-b26")
	base, err := signatureBase(r, m.(httpsfv.InnerList))
	if err != nil {
		t.Fatal(err)
	}
	key, sig := unbase64(t, rfcKey), unbase64(t, rfcSignature)
	if !ed25519.Verify(key, base, sig) {
		t.Errorf("the signature of the RFC does not fit the base:\n%s", base)
	}
}

func unbase64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// signedRequest is a request as a server gets it.
func signedRequest(t testing.TB, target, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequest("POST", target, strings.NewReader(body))
	if err := Sign(r, []byte(body), testKey(1), time.Unix(1_800_000_000, 0), "0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	return r
}

// verifies runs what the server does of a signature, besides time and nonce.
func verifies(r *http.Request, body string) bool {
	sig, err := parseSignature(r.Header)
	return err == nil && sig.verify(r, testKey(1).Public().(ed25519.PublicKey)) && checkDigest(r.Header, []byte(body)) == nil
}

func TestAnyChangedByteBreaksTheSignature(t *testing.T) {
	const target, body = "/v1/gates/North%202/swap?a=b", `{"spare":"U1"}`
	if !verifies(signedRequest(t, target, body), body) {
		t.Fatal("the unchanged request is not accepted")
	}
	changes := map[string]func(r *http.Request) string{
		"method": func(r *http.Request) string { r.Method = "PUT"; return body },
		"path":   func(r *http.Request) string { r.URL, _ = url.Parse("/v1/gates/North%203/swap?a=b"); return body },
		"escape": func(r *http.Request) string { r.URL, _ = url.Parse("/v1/gates/North%2F2/swap?a=b"); return body },
		"query":  func(r *http.Request) string { r.URL.RawQuery = "a=c"; return body },
		"more":   func(r *http.Request) string { r.URL.RawQuery = "a=b&c"; return body },
		"body":   func(r *http.Request) string { return body + " " },
		"empty":  func(r *http.Request) string { return "" },
		"digest": func(r *http.Request) string {
			other := signedRequest(t, target, "{}")
			r.Header["Content-Digest"] = other.Header["Content-Digest"]
			return "{}"
		},
		"second digest": func(r *http.Request) string { r.Header.Add("Content-Digest", "sha-512=:AAAA:"); return body },
		"no digest":     func(r *http.Request) string { r.Header.Del("Content-Digest"); return body },
		"created":       edit("Signature-Input", "1800000000", "1800000001", body),
		"nonce":         edit("Signature-Input", "0123456789abcdef", "0123456789abcdee", body),
		"fewer":         edit("Signature-Input", `"@query" `, "", body),
		"expires":       edit("Signature-Input", ";created", ";expires=1900000000;created", body),
		"no signature":  func(r *http.Request) string { r.Header.Del("Signature"); return body },
		"two lines":     func(r *http.Request) string { r.Header.Add("Signature", "sig2=:AAAA:"); return body },
		"label":         edit("Signature", "sig1", "sig2", body),
		"short":         edit("Signature", "=:", "=:AAAA", body),
	}
	for name, change := range changes {
		r := signedRequest(t, target, body)
		got := change(r)
		if verifies(r, got) {
			t.Errorf("%s: a changed request is accepted", name)
		}
	}
}

func edit(field, from, to, body string) func(r *http.Request) string {
	return func(r *http.Request) string {
		r.Header.Set(field, strings.Replace(r.Header.Get(field), from, to, 1))
		return body
	}
}

// TestEveryBitOfTheSignature flips each bit of the signature and of the digest.
func TestEveryBitOfTheSignature(t *testing.T) {
	r := signedRequest(t, "/v1/revocations", "{}")
	for _, field := range []string{"Signature", "Content-Digest"} {
		value := r.Header.Get(field)
		from := strings.IndexByte(value, ':') + 1
		raw := unbase64(t, strings.TrimSuffix(value[from:], ":"))
		for bit := range len(raw) * 8 {
			raw[bit/8] ^= 1 << (bit % 8)
			r.Header.Set(field, value[:from]+base64.StdEncoding.EncodeToString(raw)+":")
			if verifies(r, "{}") {
				t.Errorf("%s with bit %d flipped is accepted", field, bit)
			}
			raw[bit/8] ^= 1 << (bit % 8)
		}
		r.Header.Set(field, value)
	}
	if !verifies(r, "{}") {
		t.Error("the unchanged request is not accepted")
	}
}

func TestSignatureParametersAreChecked(t *testing.T) {
	good := signedRequest(t, "/", "").Header.Get("Signature-Input")
	for name, input := range map[string]string{
		"created as text":   strings.Replace(good, "created=1800000000", `created="1800000000"`, 1),
		"created as float":  strings.Replace(good, "created=1800000000", `created=1800000000.5`, 1),
		"no created":        strings.Replace(good, ";created=1800000000", "", 1),
		"nonce as a token":  strings.Replace(good, `"0123456789abcdef"`, "token", 1),
		"short nonce":       strings.Replace(good, "0123456789abcdef", "0123", 1),
		"long nonce":        strings.Replace(good, "0123456789abcdef", strings.Repeat("0", 129), 1),
		"no key":            strings.Replace(good, "keyid=", "tag=", 1),
		"another algorithm": good + `;alg="hmac-sha256"`,
		"with parameters":   strings.Replace(good, `"@query"`, `"@query";req`, 1),
		"no list":           `sig1="@method"`,
		"two signatures":    good + ", sig2=()",
		"junk":              "((((",
	} {
		h := signedRequest(t, "/", "").Header
		h.Set("Signature-Input", input)
		if _, err := parseSignature(h); err == nil {
			t.Errorf("%s: %s is accepted", name, input)
		}
	}
	h := signedRequest(t, "/", "").Header
	h.Set("Signature-Input", good+`;alg="ed25519"`)
	if _, err := parseSignature(h); err != nil {
		t.Errorf("the right algorithm is refused: %v", err)
	}
}

func TestWindowIsTheSameBothWays(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		skew time.Duration
		want string
	}{
		{0, ""}, {Window - time.Second, ""}, {-Window + time.Second, ""},
		{Window, "5m0s behind"}, {-Window, "5m0s ahead of"},
		{7*time.Minute + 12*time.Second, "7m12s behind"}, {-49 * time.Hour, "49h0m0s ahead of"},
	} {
		p := checkTime(now.Add(-c.skew), now)
		switch {
		case c.want == "" && p != nil:
			t.Errorf("%s: got %v, want that it is accepted", c.skew, p)
		case c.want != "" && (p == nil || !strings.Contains(p.Detail, "your clock is "+c.want+" the ledger's")):
			t.Errorf("%s: got %v, want %q", c.skew, p, c.want)
		}
	}
}

func FuzzSignatureFields(f *testing.F) {
	r := signedRequest(f, "/v1/revocations", "{}")
	f.Add(r.Header.Get("Signature-Input"), r.Header.Get("Signature"), r.Header.Get("Content-Digest"))
	f.Add(rfcInput, "sig-b26=:"+rfcSignature+":", "sha-512=:AAAA:")
	f.Add(`sig1=("@method";x=?1);created=-9.1`, "sig1=1", "sha-256=(1 2)")
	want := r.Header.Clone()
	f.Fuzz(func(t *testing.T, input, value, digest string) {
		r := httptest.NewRequest("POST", "/v1/revocations", nil)
		r.Header.Set("Signature-Input", input)
		r.Header.Set("Signature", value)
		r.Header.Set("Content-Digest", digest)
		if !verifies(r, "{}") {
			return
		}
		a, _ := parseSignature(r.Header)
		b, _ := parseSignature(want)
		if a.nonce != b.nonce || a.keyID != b.keyID || !a.created.Equal(b.created) || !bytes.Equal(a.value, b.value) {
			t.Errorf("another signature is accepted:\n%s\n%s", input, value)
		}
	})
}

package webhook_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"admitone/internal/webhook"
)

var body = []byte(`{"type":"order.paid","data":{}}`)

func text(n byte, size int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string('a'+rune(n)), size)))
}

func secret(t testing.TB, n byte) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text(n, 24))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signed(t *testing.T, id string, at time.Time, secrets ...webhook.Secret) http.Header {
	t.Helper()
	h := http.Header{}
	if err := webhook.Sign(h, id, at, body, secrets); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSecrets(t *testing.T) {
	for text, ok := range map[string]bool{
		text(1, 24): true, text(1, 64): true, text(1, 23): false, text(1, 65): false, "whsec_": false, "": false,
		strings.TrimPrefix(text(1, 24), "whsec_"): false, text(1, 24) + "=": false, text(1, 24)[:20] + "\n" + text(1, 24)[20:]: false,
	} {
		s, err := webhook.ParseSecret(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && len(text) > 10 && strings.Contains(err.Error(), text) || strings.Contains(fmt.Sprintf("%v %+v %#v", s, s, s), "YWFh") {
			t.Errorf("%q shows itself: %v, %#v", text, err, s)
		}
	}
	list, err := webhook.ReadSecrets(strings.NewReader("# from May\n" + text(1, 24) + "\n\n  " + text(2, 32) + " \r\n"))
	if err != nil || len(list) != 2 {
		t.Errorf("got %d secrets, %v, want 2", len(list), err)
	}
	for _, bad := range []string{"", "# none\n", text(1, 24) + "\nwhsec_x\n"} {
		if _, err := webhook.ReadSecrets(strings.NewReader(bad)); err == nil || strings.Contains(bad, "x\n") && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestTheLibraryAgrees: what we sign is good to the library's own check, and the
// other way round, for ids of any characters.
func TestTheLibraryAgrees(t *testing.T) {
	theirs, err := standardwebhooks.NewWebhook(text(1, 24))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, id := range []string{"msg_1", "a.b.1700000000", "with space", "ümläut ✓", "\xff\xfe", "../../etc", strings.Repeat("x", webhook.MaxID), `"quoted", comma`} {
		h := signed(t, id, now, secret(t, 1))
		if err := theirs.Verify(body, h); err != nil {
			t.Errorf("%q: the library refuses what we signed: %v", id, err)
		}
		sig, err := theirs.Sign(id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		h.Set("webhook-signature", sig)
		if m, err := webhook.Verify(h, body, []webhook.Secret{secret(t, 1)}, now); err != nil || m.ID != id || m.At.Unix() != now.Unix() {
			t.Errorf("%q: we refuse what the library signed: %+v, %v", id, m, err)
		}
	}
}

func TestVerify(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	good := func() http.Header { return signed(t, "msg_1", at, secret(t, 1)) }
	with := func(name, value string) http.Header {
		h := good()
		h.Set(name, value)
		return h
	}
	twice := func(name string) http.Header {
		h := good()
		h.Add(name, h.Get(name))
		return h
	}
	sig := good().Get("webhook-signature")
	for name, c := range map[string]struct {
		h    http.Header
		now  time.Duration
		want error
	}{
		"good":                  {good(), 0, nil},
		"late":                  {good(), webhook.Window - time.Second, nil},
		"too late":              {good(), webhook.Window, webhook.ErrTime},
		"early":                 {good(), time.Second - webhook.Window, nil},
		"too early":             {good(), -webhook.Window, webhook.ErrTime},
		"an hour late":          {good(), time.Hour, webhook.ErrTime},
		"old secret":            {signed(t, "msg_1", at, secret(t, 2)), 0, nil},
		"both secrets":          {signed(t, "msg_1", at, secret(t, 3), secret(t, 2)), 0, nil},
		"unknown secret":        {signed(t, "msg_1", at, secret(t, 3)), 0, webhook.ErrSignature},
		"unknown secret, late":  {signed(t, "msg_1", at, secret(t, 3)), time.Hour, webhook.ErrSignature},
		"other versions beside": {with("webhook-signature", "v1a,xxxx v9 "+sig), 0, nil},
		"other version":         {with("webhook-signature", "v2,"+sig[3:]), 0, webhook.ErrSignature},
		"no version":            {with("webhook-signature", sig[3:]), 0, webhook.ErrSignature},
		"other id":              {with("webhook-id", "msg_2"), 0, webhook.ErrSignature},
		"other time":            {with("webhook-timestamp", "1800000001"), 0, webhook.ErrSignature},
		"time with a sign":      {with("webhook-timestamp", "+1800000000"), 0, webhook.ErrHeader},
		"time with a zero":      {with("webhook-timestamp", "01800000000"), 0, webhook.ErrHeader},
		"no number":             {with("webhook-timestamp", "now"), 0, webhook.ErrHeader},
		"beyond numbers":        {with("webhook-timestamp", "99999999999999999999"), 0, webhook.ErrHeader},
		"no id":                 {with("webhook-id", ""), 0, webhook.ErrHeader},
		"long id":               {with("webhook-id", strings.Repeat("x", webhook.MaxID+1)), 0, webhook.ErrHeader},
		"no signature":          {with("webhook-signature", ""), 0, webhook.ErrHeader},
		"two ids":               {twice("webhook-id"), 0, webhook.ErrHeader},
		"two times":             {twice("webhook-timestamp"), 0, webhook.ErrHeader},
		"two signature fields":  {twice("webhook-signature"), 0, webhook.ErrHeader},
	} {
		_, err := webhook.Verify(c.h, body, []webhook.Secret{secret(t, 1), secret(t, 2)}, at.Add(c.now))
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for i := range body {
		changed := append([]byte(nil), body...)
		changed[i] ^= 1
		if _, err := webhook.Verify(good(), changed, []webhook.Secret{secret(t, 1)}, at); !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	if _, err := webhook.Verify(good(), body, nil, at); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("no secrets: %v", err)
	}
}

// TestAnotherCutIsNoObject: the signed bytes of a message with dots in its id can
// be cut elsewhere, and what is then the body is no JSON object.
func TestAnotherCutIsNoObject(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	h := signed(t, "msg.1800000000", at, secret(t, 1))
	h.Set("webhook-id", "msg")
	other := append([]byte("1800000000."), body...)
	if _, err := webhook.Verify(h, other, []webhook.Secret{secret(t, 1)}, at); err != nil {
		t.Fatalf("the cut does not fit: %v", err)
	}
	if other[0] == '{' {
		t.Error("the other cut is an object")
	}
}

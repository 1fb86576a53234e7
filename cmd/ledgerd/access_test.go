package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"admitone/internal/config"
	"admitone/internal/ledgerhttp"
	"admitone/internal/reload"
)

// keyRig is a configuration file that a test writes anew.
type keyRig struct {
	t      *testing.T
	dir    string
	log    bytes.Buffer
	keys   *live
	watch  *reload.Watcher
	access ledgerhttp.Access // what a server was told last
}

const (
	head    = "data_dir = \"data\"\n[[webhook]]\nsource = \"shop\"\nsecrets = \"shop.secrets\"\n"
	secretA = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0\n"
	secretB = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo=\n"
)

func caller(name, key string) string {
	return fmt.Sprintf("[[caller]]\nname = %q\nkey_sha256 = \"%x\"\nscopes = [\"read\"]\n", name, sha256.Sum256([]byte(key)))
}

func (r *keyRig) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		r.t.Fatal(err)
	}
}

func newKeyRig(t *testing.T) *keyRig {
	t.Helper()
	r := &keyRig{t: t, dir: t.TempDir()}
	r.write("shop.secrets", secretA)
	r.write("ledgerd.toml", head+caller("desk", "one")+caller("desk", "two"))
	c, err := config.LoadLedger(filepath.Join(r.dir, "ledgerd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if r.keys, r.watch, err = watchKeys(c, slog.New(slog.NewTextHandler(&r.log, nil))); err != nil {
		t.Fatal(err)
	}
	r.keys.serve(func(a ledgerhttp.Access) { r.access = a })
	r.watch.Look()
	return r
}

// TestAKeyIsTakenOutWithoutARestart: what the file says holds at the next look; one
// that cannot be used changes nothing.
func TestAKeyIsTakenOutWithoutARestart(t *testing.T) {
	r := newKeyRig(t)
	if len(r.access.Callers) != 2 || len(r.keys.secretsOf(filepath.Join(r.dir, "shop.secrets"))()) != 1 {
		t.Fatalf("began with %+v", r.access)
	}
	r.write("ledgerd.toml", head+caller("desk", "two"))
	r.watch.Look()
	if len(r.access.Callers) != 1 || r.access.Callers[0].Hash != sha256.Sum256([]byte("two")) {
		t.Errorf("callers %+v, want the second key alone", r.access.Callers)
	}
	r.write("ledgerd.toml", head+caller("desk", "two")+"[[caller]]\nname = \"x\"\n")
	r.watch.Look()
	if len(r.access.Callers) != 1 || !strings.Contains(r.log.String(), "caller[1].key_sha256") {
		t.Errorf("a file with a problem: callers %+v, log %s", r.access.Callers, &r.log)
	}
	r.write("ledgerd.toml", head+caller("desk", "three"))
	r.watch.Look()
	if len(r.access.Callers) != 1 || r.access.Callers[0].Hash != sha256.Sum256([]byte("three")) {
		t.Errorf("after it was mended: %+v", r.access.Callers)
	}
}

func TestASecretIsAddedWithoutARestart(t *testing.T) {
	r := newKeyRig(t)
	secrets := r.keys.secretsOf(filepath.Join(r.dir, "shop.secrets"))
	for _, c := range []struct {
		text string
		want int
	}{{secretA + secretB, 2}, {"whsec_\n", 2}, {secretB, 1}} {
		r.write("shop.secrets", c.text)
		r.watch.Look()
		if got := len(secrets()); got != c.want {
			t.Errorf("%q: %d secrets, want %d", c.text, got, c.want)
		}
	}
	if strings.Contains(r.log.String(), strings.TrimSpace(secretA)) {
		t.Error("a secret is in the log")
	}
}

// TestOtherChangesAskForARestart, once.
func TestOtherChangesAskForARestart(t *testing.T) {
	r := newKeyRig(t)
	for i := range 3 {
		r.write("ledgerd.toml", "process = \"other\"\n"+head+strings.Repeat("\n", i))
		r.watch.Look()
	}
	if got := strings.Count(r.log.String(), "restart ledgerd"); got != 1 || len(r.access.Callers) != 0 {
		t.Errorf("asked %d times, want once; callers %+v, want the new ones all the same: %s", got, r.access.Callers, &r.log)
	}
}

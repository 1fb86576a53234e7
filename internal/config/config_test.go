package config

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"golang.org/x/tools/txtar"
)

// -update writes the transcripts anew; read the difference before committing it.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the transcripts anew")
	flag.Parse()
	os.Exit(m.Run())
}

// TestTranscripts holds what -check-config prints for a folder of files to
// what is written beside them, word for word.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { transcript(t, file) })
	}
}

func transcript(t *testing.T, file string) {
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := txtar.ParseFile(abs)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	unpack(t, a)
	var out bytes.Buffer
	code := 0
	if strings.HasPrefix(filepath.Base(file), "gate") {
		_, err := LoadGate("gated.toml")
		code = Report(&out, "gated.toml", err)
	} else {
		_, err := LoadLedger("ledgerd.toml")
		code = Report(&out, "ledgerd.toml", err)
	}
	fmt.Fprintf(&out, "exit %d\n", code)
	want := &a.Files[len(a.Files)-1]
	if updating() {
		want.Data = out.Bytes()
		if err := os.WriteFile(abs, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != string(want.Data) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want.Data)
	}
}

// unpack writes the files of a transcript with mode 0600, or the one after the
// name, and with fresh keys in the place of $SEED and $KEY.
func unpack(t *testing.T, a *txtar.Archive) {
	t.Helper()
	for _, f := range a.Files[:len(a.Files)-1] {
		name, mode, _ := strings.Cut(f.Name, " ")
		perm := uint64(0o600)
		if mode != "" {
			var err error
			if perm, err = strconv.ParseUint(mode, 8, 32); err != nil {
				t.Fatal(err)
			}
		}
		text := strings.NewReplacer("$SEED", seed(t), "$KEY", key(t)).Replace(string(f.Data))
		if err := os.WriteFile(name, []byte(text), os.FileMode(perm)); err != nil {
			t.Fatal(err)
		}
	}
}

func seed(t *testing.T) string {
	t.Helper()
	k, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := k.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return string(s)
}

func key(t *testing.T) string {
	t.Helper()
	_, k, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})))
}

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"admitone/internal/config"
)

func secretCommands() []command {
	return []command{{
		name: "key bearer", args: "FILE", about: "Make a bearer key, for a caller of the ledger's API", min: 1, max: 1,
		help: "The key is in the file, with mode 0600; give it to the caller. key_sha256 is what the ledger's [[caller]] wants.\n" +
			"To replace a key, add a second [[caller]] of the same name, and take the first one out when nobody uses it any more.",
		flags: noFlags(newBearer),
	}, {
		name: "key webhook", args: "FILE", about: "Make a secret that webhooks are signed with", min: 1, max: 1,
		help: "It is one line of the file, for the secrets of a [[webhook]] or [[notify]]; the other side gets the same line.\n" +
			"A file that is there gets a further one: all of them are good until you take one out.",
		flags: noFlags(newSecret),
	}}
}

// secretSize is the length of keys and secrets in bytes, before they are text.
const secretSize = 32

func randomBytes() []byte {
	b := make([]byte, secretSize)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return b
}

func newBearer(_ context.Context, c *call) error {
	key := base64.RawURLEncoding.EncodeToString(randomBytes())
	if err := config.WriteNew(c.args[0], []byte(key+"\n"), 0o600); err != nil {
		return keepFile(err)
	}
	sum := sha256.Sum256([]byte(key))
	r := struct {
		File string `json:"file"`
		Hash string `json:"key_sha256"`
	}{c.args[0], hex.EncodeToString(sum[:])}
	return c.out.fields(r, field{"file", text(r.File)}, field{"key_sha256", text(r.Hash)})
}

func newSecret(_ context.Context, c *call) error {
	all, err := config.ReadSecrets(c.args[0])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return hint(err, "it has lines that are no secrets: mend it, or name another file")
	}
	f, err := os.OpenFile(c.args[0], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open secrets: %w", err)
	}
	// In one piece: whoever reads meanwhile sees the line whole or not at all.
	_, err = f.WriteString("whsec_" + base64.StdEncoding.EncodeToString(randomBytes()) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	r := struct {
		File    string `json:"file"`
		Secrets int    `json:"secrets"` // that the file has now
	}{c.args[0], len(all) + 1}
	return c.out.fields(r, field{"file", text(r.File)}, field{"secrets", text(fmt.Sprint(r.Secrets))})
}

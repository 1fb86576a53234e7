package main

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"

	"admitone/internal/config"
	"admitone/internal/ledgerhttp"
	"admitone/internal/reload"
	"admitone/internal/webhook"
)

// access is who may call, as the configuration says.
func access(c config.Ledger) (a ledgerhttp.Access, err error) {
	for _, k := range c.Callers {
		caller := ledgerhttp.Caller{Name: k.Name, Scopes: texts(k.Scopes), Place: k.Place, NotBefore: k.NotBefore, NotAfter: k.NotAfter}
		if _, err := hex.Decode(caller.Hash[:], []byte(k.KeySHA256)); err != nil {
			return a, fmt.Errorf("read caller %s: %w", k.Name, err)
		}
		a.Callers = append(a.Callers, caller)
	}
	for _, k := range c.Signers {
		public, err := hex.DecodeString(k.Public)
		if err != nil {
			return a, fmt.Errorf("read signer %s: %w", k.Name, err)
		}
		a.Signers = append(a.Signers, ledgerhttp.Signer{
			Name: k.Name, Public: public, Scopes: texts(k.Scopes), NotBefore: k.NotBefore, NotAfter: k.NotAfter,
		})
	}
	return a, nil
}

func texts(scopes []config.Scope) []string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = string(s)
	}
	return out
}

// live is what of the configuration can change while the process runs: keys of
// callers and signers, and secrets of webhooks. The rest needs a restart.
type live struct {
	began config.Ledger
	log   *slog.Logger

	secrets atomic.Pointer[map[string][]webhook.Secret] // by file
	access  atomic.Pointer[ledgerhttp.Access]
	use     atomic.Pointer[func(ledgerhttp.Access)] // nil: nobody asks yet
	differs bool                                    // a restart is due, and was asked for
}

// watchKeys loads what can change, and watches it when it runs.
func watchKeys(c config.Ledger, log *slog.Logger) (*live, *reload.Watcher, error) {
	v := &live{began: c, log: log}
	w, err := reload.New(reload.Options{Name: "keys and secrets", Load: v.load, Log: log})
	return v, w, err
}

// serve has a server use what holds now and whatever comes.
func (v *live) serve(use func(ledgerhttp.Access)) {
	v.use.Store(&use)
	use(*v.access.Load())
}

// load is reload.Options.Load: the file with all that it names, or nothing of it.
func (v *live) load() (files []string, err error) {
	files = append(files, v.began.File)
	c, err := config.LoadLedger(v.began.File)
	if err != nil {
		return nil, err
	}
	a, err := access(c)
	if err != nil {
		return nil, err
	}
	secrets := map[string][]webhook.Secret{}
	for _, f := range secretFiles(c) {
		if secrets[f], err = config.ReadSecrets(f); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	v.secrets.Store(&secrets)
	v.access.Store(&a)
	if use := v.use.Load(); use != nil {
		(*use)(a)
	}
	if differs := !reflect.DeepEqual(lasting(c), lasting(v.began)); differs != v.differs {
		v.differs = differs
		if differs {
			v.log.Warn("more than keys and secrets changed in the configuration: restart ledgerd to apply it", "file", c.File)
		}
	}
	return files, nil
}

// lasting is what needs a restart.
func lasting(c config.Ledger) config.Ledger {
	c.Callers, c.Signers = nil, nil
	return c
}

func secretFiles(c config.Ledger) (out []string) {
	for _, w := range c.Webhooks {
		out = append(out, w.Secrets)
	}
	for _, n := range c.Notify {
		out = append(out, n.Secrets)
	}
	return out
}

// secretsOf gives a function that reads what a file of secrets holds now.
func (v *live) secretsOf(file string) func() []webhook.Secret {
	return func() []webhook.Secret { return (*v.secrets.Load())[file] }
}

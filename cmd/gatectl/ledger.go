package main

import (
	"crypto/ed25519"
	"os"
	"strings"

	"admitone/internal/config"
	"admitone/internal/ledgerhttp"
)

// ledgerFor makes a client with what a command needs, and says what is missing.
func (c *call) ledgerFor(u uses) (*ledgerhttp.Client, error) {
	if c.ledger == "" {
		return nil, hint(wrongUsage("which ledger?"), "give -ledger URL, or set ADMITONE_LEDGER")
	}
	bearer := ""
	if u&reads != 0 {
		if c.keyFile == "" {
			return nil, hint(wrongUsage("the ledger lets nobody read without a key"), "give -key-file FILE, or set ADMITONE_KEY to its path")
		}
		b, err := os.ReadFile(c.keyFile)
		if err != nil {
			return nil, err
		}
		bearer = strings.TrimSpace(string(b))
	}
	var signer ed25519.PrivateKey
	if u&writes != 0 {
		if c.sign == "" {
			return nil, hint(wrongUsage("the ledger takes signed changes only"), "give -sign FILE, or set ADMITONE_SIGN to its path; `gatectl key new FILE` makes a key")
		}
		var err error
		if signer, err = config.ReadKey(c.sign); err != nil {
			return nil, err
		}
	}
	return ledgerhttp.NewClient(c.ledger, bearer, signer)
}

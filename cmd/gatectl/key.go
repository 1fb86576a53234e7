package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"admitone/internal/config"
	"admitone/internal/ticket"
)

func keyCommands() []command {
	return []command{{
		name: "key new", args: "FILE", about: "Make an Ed25519 key, for tickets or for signing changes", min: 1, max: 1,
		help:  "The file is PEM (PKCS #8) with mode 0600. A file that is there is never overwritten.\nid and public are what a programme's keys and the ledger's signers want.",
		flags: noFlags(newKey),
	}, {
		name: "key show", args: "FILE", about: "Print the id and public half of a key", min: 1, max: 1,
		help: "FILE is PEM, the private or the public key.", flags: noFlags(showKey),
	}}
}

// keyReport is what is public of a key.
type keyReport struct {
	File   string `json:"file"`
	ID     string `json:"id"`
	Public string `json:"public"`
}

func (c *call) reportKey(file string, pub ed25519.PublicKey) error {
	r := keyReport{File: file, ID: ticket.KeyID(pub), Public: hex.EncodeToString(pub)}
	return c.out.fields(r, field{"file", text(r.File)}, field{"id", text(r.ID)}, field{"public", text(r.Public)})
}

func newKey(_ context.Context, c *call) error {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	if err := config.WriteKey(c.args[0], priv); err != nil {
		return keepFile(err)
	}
	return c.reportKey(c.args[0], pub)
}

// keepFile explains why a file that is there was left alone.
func keepFile(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return hint(err, "it is never overwritten: name another file, or move that one away")
	}
	return err
}

func showKey(_ context.Context, c *call) error {
	pub, err := readPublic(c.args[0])
	if err != nil {
		return err
	}
	return c.reportKey(c.args[0], pub)
}

// readPublic gives the public key of a PEM file with either half.
func readPublic(file string) (ed25519.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if priv, err := ticket.ParsePrivateKey(b); err == nil {
		return priv.Public().(ed25519.PublicKey), nil
	}
	pub, err := ticket.ParsePublicKey(b)
	if err != nil {
		return nil, fmt.Errorf("read key %s: no Ed25519 key in PEM, private or public", file)
	}
	return pub, nil
}

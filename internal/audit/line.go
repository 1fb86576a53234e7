package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Line is one admin write. Everything but N, Prev and Hash is the writer's to set.
type Line struct {
	N       uint64 `json:"n"`       // 1, 2, 3 …
	Time    string `json:"time"`    // when it came, by the ledger's clock: ticket.TimeFormat
	By      string `json:"by"`      // the signer's name
	Key     string `json:"key"`     // which of the signer's keys: 64 hex digits
	Method  string `json:"method"`  //
	Path    string `json:"path"`    // as it was signed, with its query
	Digest  string `json:"digest"`  // SHA-256 of the request's body, 64 hex digits
	Nonce   string `json:"nonce"`   // of the signature
	Status  int    `json:"status"`  // what was answered: 200 where it was executed
	Problem string `json:"problem"` // why it was not executed, the last part of the problem's type; "": it was
	Prev    string `json:"prev"`    // the hash of the line before
	Hash    string `json:"hash"`    // of this line, over Prev and all the rest
}

// domain begins what is hashed, so that no other hash of ours can be one of a line.
const domain = "admitone audit line 1\x00"

// sum gives the hash that belongs to a line's fields.
func (l Line) sum() string {
	b := []byte(domain)
	for _, s := range []string{
		l.Prev, strconv.FormatUint(l.N, 10), l.Time, l.By, l.Key, l.Method, l.Path, l.Digest, l.Nonce,
		strconv.Itoa(l.Status), l.Problem,
	} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// Head is the end of the log at some time: how many lines, and the hash of the
// last. Kept elsewhere, it proves later that nothing up to it was changed or cut
// off. Its zero value is the head of an empty log.
type Head struct {
	N    uint64
	Hash string // 64 hex digits; "" where N is 0
}

// String gives N:HASH.
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.N, h.hash()) }

func (h Head) hash() string {
	if h.N == 0 {
		return strings.Repeat("0", 2*sha256.Size)
	}
	return h.Hash
}

// ParseHead reads what String wrote.
func ParseHead(s string) (Head, error) {
	number, hash, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	b, err2 := hex.DecodeString(hash)
	h := Head{N: n, Hash: hash}
	if errors.Join(err, err2) != nil || len(b) != sha256.Size || n == 0 && hash != h.hash() {
		return Head{}, fmt.Errorf("read head %q: want NUMBER:HASH, as `gatectl audit verify` prints it", s)
	}
	if n == 0 {
		h.Hash = ""
	}
	return h, nil
}

// follow gives the line with its place behind a head.
func (l Line) follow(h Head) Line {
	l.N, l.Prev = h.N+1, h.hash()
	l.Hash = l.sum()
	return l
}

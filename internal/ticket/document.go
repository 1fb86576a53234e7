package ticket

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/veraison/go-cose"
)

// errSigned is returned when bytes are not the one form of a COSE_Sign1 that
// sealed.encode gives.
var errSigned = errors.New("not a COSE_Sign1 of the one form")

// errSignature is returned when the form is right and the signature is not the
// key's.
var errSignature = errors.New("the signature is not this key's")

// keyTag names a key within a COSE header: the first bytes of the SHA-256 of
// the public key. It only selects a key and proves nothing.
type keyTag [4]byte

func tagOf(pub ed25519.PublicKey) (t keyTag) {
	h := sha256.Sum256(pub)
	copy(t[:], h[:])
	return t
}

func (t keyTag) String() string { return hex.EncodeToString(t[:]) }

// KeyID is the id of an Ed25519 public key in tickets and programmes: 8
// lower-case hex digits, the first 4 bytes of the key's SHA-256.
func KeyID(pub ed25519.PublicKey) string { return tagOf(pub).String() }

// sealed is an untagged COSE_Sign1 (RFC 9052, section 4.2) with exactly the
// protected header {1: -8 (EdDSA), 4: key tag, 16: kind} and an empty
// unprotected one. The kind (RFC 9596) is left out of tickets, where every byte
// makes the code coarser; elsewhere it keeps one kind of document from being
// taken for another.
type sealed struct {
	key       keyTag
	kind      string
	payload   []byte
	signature []byte
}

func (s sealed) message() *cose.UntaggedSign1Message {
	protected := cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm: cose.AlgorithmEdDSA,
		cose.HeaderLabelKeyID:     s.key[:],
	}
	if s.kind != "" {
		protected[cose.HeaderLabelType] = s.kind
	}
	return &cose.UntaggedSign1Message{
		Headers:   cose.Headers{Protected: protected, Unprotected: cose.UnprotectedHeader{}},
		Payload:   s.payload,
		Signature: s.signature,
	}
}

// seal signs the payload and gives the encoded message.
func seal(kind string, payload []byte, priv ed25519.PrivateKey) ([]byte, error) {
	if len(priv) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("sign: a key of %d bytes, want %d", len(priv), ed25519.PrivateKeySize)
	}
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, priv)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	m := sealed{key: tagOf(priv.Public().(ed25519.PublicKey)), kind: kind, payload: payload}.message()
	if err := m.Sign(nil, nil, signer); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	b, err := m.MarshalCBOR()
	if err != nil {
		return nil, fmt.Errorf("encode signed message: %w", err)
	}
	return b, nil
}

// unseal reads what seal writes, without verifying it. The codec is lenient
// (longer integers, other headers, other orders), so what it read is encoded
// anew and has to give the same bytes: every message has one spelling.
func unseal(kind string, b []byte) (sealed, error) {
	var m cose.UntaggedSign1Message
	if err := m.UnmarshalCBOR(b); err != nil {
		return sealed{}, errSigned
	}
	s := sealed{kind: kind, payload: m.Payload, signature: m.Signature}
	tag, ok := m.Headers.Protected[cose.HeaderLabelKeyID].([]byte)
	if !ok || len(tag) != len(s.key) || len(s.signature) != ed25519.SignatureSize {
		return sealed{}, errSigned
	}
	copy(s.key[:], tag)
	again, err := s.message().MarshalCBOR()
	if err != nil || !bytes.Equal(again, b) {
		return sealed{}, errSigned
	}
	return s, nil
}

// verify checks the signature. The algorithm is the key's, never the message's.
func (s sealed) verify(pub ed25519.PublicKey) error {
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, pub)
	if err != nil {
		return errSignature
	}
	if s.message().Verify(nil, verifier) != nil {
		return errSignature
	}
	return nil
}

// SignDocument signs a document of a kind, a media type such as
// "application/x-admitone-programme". The result is deterministic.
func SignDocument(kind string, payload []byte, priv ed25519.PrivateKey) ([]byte, error) {
	if kind == "" {
		return nil, fmt.Errorf("sign document: no kind")
	}
	return seal(kind, payload, priv)
}

// OpenDocument gives the payload of what SignDocument wrote, or an error where
// it is of another kind, in another spelling or not signed by this key.
func OpenDocument(kind string, signed []byte, pub ed25519.PublicKey) ([]byte, error) {
	s, err := unseal(kind, signed)
	if err != nil {
		return nil, fmt.Errorf("open document: %w (of kind %q)", err, kind)
	}
	if len(pub) != ed25519.PublicKeySize || s.key != tagOf(pub) {
		return nil, fmt.Errorf("open document: signed by key %s, want %s", s.key, KeyID(pub))
	}
	if err := s.verify(pub); err != nil {
		return nil, fmt.Errorf("open document: %w", err)
	}
	return s.payload, nil
}

package ledgerhttp

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// This is the subset of RFC 9421 that admin requests use: one signature of any
// label, Ed25519, over at least the components of covered, with created, nonce
// and keyid. Other plain header fields and @authority may be covered, too.
//
// It is our own because the libraries at hand accept more than they say: the
// @target-uri of github.com/remitly-oss/httpsig-go v1.2.0 leaves the path out,
// its window into the future is fixed, and a parameter of an unexpected type
// ends in a panic.

// Window is how far a signed request's created may be from the ledger's clock,
// either way (specification, section 7).
const Window = 5 * time.Minute

func covered() []string { return []string{"@method", "@path", "@query", "content-digest"} }

// KeyID names a signing key in requests: the 64 hex digits of its public half.
func KeyID(public ed25519.PublicKey) string { return hex.EncodeToString(public) }

// signature is what the two header fields of a signed request say. Nothing of
// it is proven before verify.
type signature struct {
	params  httpsfv.InnerList // the components and parameters, as they were sent
	value   []byte
	keyID   string
	nonce   string
	created time.Time
}

// NewNonce makes the part of a signed request that may never come again: 128
// random bits.
func NewNonce() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// Sign signs a request whose body is given; it sets Content-Digest,
// Signature-Input and Signature. created has a resolution of one second.
func Sign(r *http.Request, body []byte, key ed25519.PrivateKey, created time.Time, nonce string) error {
	sum := sha256.Sum256(body)
	digests := httpsfv.NewDictionary()
	digests.Add("sha-256", httpsfv.NewItem(sum[:]))
	digest, err := httpsfv.Marshal(digests)
	if err != nil {
		return fmt.Errorf("encode digest: %w", err)
	}
	r.Header.Set("Content-Digest", digest)
	params := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, name := range covered() {
		params.Items = append(params.Items, httpsfv.NewItem(name))
	}
	params.Params.Add("created", created.Unix())
	params.Params.Add("keyid", KeyID(key.Public().(ed25519.PublicKey)))
	params.Params.Add("nonce", nonce)
	base, err := signatureBase(r, params)
	if err != nil {
		return err
	}
	if err := setDictionary(r.Header, "Signature-Input", params); err != nil {
		return err
	}
	return setDictionary(r.Header, "Signature", httpsfv.NewItem(ed25519.Sign(key, base)))
}

func setDictionary(h http.Header, field string, m httpsfv.Member) error {
	d := httpsfv.NewDictionary()
	d.Add("sig1", m)
	s, err := httpsfv.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode %s: %w", field, err)
	}
	h.Set(field, s)
	return nil
}

// parseSignature reads the two fields. The errors say what a client has to do.
func parseSignature(h http.Header) (signature, error) {
	var s signature
	label, input, err := onlyMember(h, "Signature-Input")
	if err != nil {
		return s, err
	}
	params, ok := input.(httpsfv.InnerList)
	if !ok {
		return s, errors.New("Signature-Input is not a list of components in parentheses")
	}
	other, value, err := onlyMember(h, "Signature")
	if err != nil {
		return s, err
	}
	item, ok := value.(httpsfv.Item)
	if ok {
		s.value, ok = item.Value.([]byte)
	}
	if !ok || label != other {
		return s, fmt.Errorf("the request has no bytes in Signature for the label %q of Signature-Input", label)
	}
	// Base64 has spellings of one value that differ in bits which nothing reads.
	if !strings.Contains(strings.Join(h.Values("Signature"), ","), ":"+base64.StdEncoding.EncodeToString(s.value)+":") {
		return s, errors.New("the bytes in Signature are not spelled as base64 encodes them")
	}
	s.params = params
	return s, s.readParams()
}

func onlyMember(h http.Header, field string) (label string, m httpsfv.Member, err error) {
	lines := h.Values(field)
	if len(lines) == 0 {
		return "", nil, fmt.Errorf("the request has no %s", field)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil || len(d.Names()) != 1 {
		return "", nil, fmt.Errorf("%s must hold one signature (RFC 9421)", field)
	}
	label = d.Names()[0]
	m, _ = d.Get(label)
	return label, m, nil
}

// readParams takes the parameters; each must be known and of its type.
func (s *signature) readParams() error {
	for _, name := range s.params.Params.Names() {
		v, _ := s.params.Params.Get(name)
		ok := false
		switch name {
		case "created":
			var n int64
			n, ok = v.(int64)
			s.created = time.Unix(n, 0)
		case "keyid":
			s.keyID, ok = v.(string)
		case "nonce":
			s.nonce, ok = v.(string)
		case "alg":
			ok = v == "ed25519"
		}
		if !ok {
			return fmt.Errorf("the signature's parameter %s is not accepted as it is: send created (a number), nonce, keyid and, if at all, alg=\"ed25519\"", name)
		}
	}
	if s.created.IsZero() || s.keyID == "" || len(s.nonce) < 16 || len(s.nonce) > 128 {
		return errors.New("the signature needs the parameters created, keyid and nonce (16 to 128 characters)")
	}
	var names []string
	for _, item := range s.params.Items {
		name, ok := item.Value.(string)
		if !ok || len(item.Params.Names()) > 0 {
			return errors.New("the signature's components must be names without parameters")
		}
		names = append(names, name)
	}
	for _, name := range covered() {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the signature does not cover %s: cover %s", name, strings.Join(covered(), ", "))
		}
	}
	return nil
}

// verify reports whether the key signed this request's head. The body is proven
// by the digest that the head carries: see checkDigest.
func (s signature) verify(r *http.Request, key ed25519.PublicKey) bool {
	base, err := signatureBase(r, s.params)
	return err == nil && ed25519.Verify(key, base, s.value)
}

// signatureBase is RFC 9421, section 2.5.
func signatureBase(r *http.Request, params httpsfv.InnerList) ([]byte, error) {
	var b strings.Builder
	var names []string
	for _, item := range params.Items {
		name, _ := item.Value.(string)
		value, err := component(r, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("the signature covers %s twice", name)
		}
		names = append(names, name)
		fmt.Fprintf(&b, "%q: %s\n", name, value)
	}
	text, err := httpsfv.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode signature parameters: %w", err)
	}
	fmt.Fprintf(&b, "\"@signature-params\": %s", text)
	return []byte(b.String()), nil
}

// component is RFC 9421, sections 2.1 and 2.2, without parameters.
func component(r *http.Request, name string) (string, error) {
	switch name {
	case "@method":
		return r.Method, nil
	case "@path":
		if p := r.URL.EscapedPath(); p != "" {
			return p, nil
		}
		return "/", nil
	case "@query":
		return "?" + r.URL.RawQuery, nil
	case "@authority":
		return strings.ToLower(r.Host), nil
	}
	values := r.Header.Values(name)
	if len(values) == 0 || name != strings.ToLower(name) || strings.HasPrefix(name, "@") {
		return "", fmt.Errorf("the signature covers %q, which the request does not have", name)
	}
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = strings.TrimSpace(v)
	}
	return strings.Join(trimmed, ", "), nil
}

// checkDigest compares the body with the Content-Digest that was signed (RFC
// 9530); sha-256 must be among its digests.
func checkDigest(h http.Header, body []byte) error {
	d, err := httpsfv.UnmarshalDictionary(h.Values("Content-Digest"))
	if err != nil {
		return errors.New("Content-Digest cannot be read (RFC 9530)")
	}
	m, _ := d.Get("sha-256")
	item, _ := m.(httpsfv.Item)
	want, ok := item.Value.([]byte)
	if !ok {
		return errors.New("Content-Digest has no sha-256")
	}
	if sum := sha256.Sum256(body); subtle.ConstantTimeCompare(want, sum[:]) != 1 {
		return errors.New("the body is not the one that was signed")
	}
	return nil
}

package ticket

import "crypto/ed25519"

// Unverified is what an a1 text says, whoever wrote it: for people who look at a
// ticket, never for admitting one.
type Unverified struct {
	Ticket Ticket
	KeyID  string // the key that the text names, see KeyID
	sealed sealed
}

// Inspect reads an a1 text as strictly as a verifier does, but for its
// signature. It returns an error for everything that is not a well-formed a1
// ticket in its one spelling.
func Inspect(text string) (Unverified, error) {
	t, s, err := readA1(text)
	if err != nil {
		return Unverified{}, err
	}
	return Unverified{Ticket: t, KeyID: s.key.String(), sealed: s}, nil
}

// SignedBy reports whether the signature is this key's.
func (u Unverified) SignedBy(pub ed25519.PublicKey) bool {
	return len(pub) == ed25519.PublicKeySize && u.sealed.key == tagOf(pub) && u.sealed.verify(pub) == nil
}

package broker

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// Roles and states of devices.
const (
	RoleGate   = "gate"
	RoleBroker = "broker"

	StateEnrolled = "enrolled"
	StateRevoked  = "revoked" // replaced, or its key is no longer trusted
	StateLost     = "lost"    // given up; nothing waits for its records
)

// Device is one line of the gate list.
type Device struct {
	Device ticket.Source `cbor:"1,keyasint"`
	Key    string        `cbor:"2,keyasint"` // its public NKey
	Place  string        `cbor:"3,keyasint"`
	Role   string        `cbor:"4,keyasint"` // RoleGate or RoleBroker
	State  string        `cbor:"5,keyasint"`
}

// GateList is who may connect as what. The ledger signs it with its
// programme-signing key; the highest version wins.
type GateList struct {
	Version uint64   `cbor:"1,keyasint"`
	Devices []Device `cbor:"2,keyasint"`
}

// signedList is a list as it travels.
type signedList struct {
	Body      []byte `cbor:"1,keyasint"`
	Signature []byte `cbor:"2,keyasint"`
}

// signedAs stands before what is signed, so that a signature of anything else
// made with the same key is none of a list.
const signedAs = "admit one gate list\x00"

var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 4, MaxArrayElements: 20000, MaxMapPairs: 16,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: only a changed library could reach this
	}
	return v
}

// Sign gives the list's one signed form: the same list, in whatever order its
// devices stand, gives the same bytes.
func (l GateList) Sign(priv ed25519.PrivateKey) ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	l.Devices = slices.Clone(l.Devices)
	slices.SortFunc(l.Devices, func(a, b Device) int { return strings.Compare(string(a.Device), string(b.Device)) })
	body, err := encMode.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("sign gate list: %w", err)
	}
	signed, err := encMode.Marshal(signedList{Body: body, Signature: ed25519.Sign(priv, append([]byte(signedAs), body...))})
	if err != nil {
		return nil, fmt.Errorf("sign gate list: %w", err)
	}
	if len(signed) > wire.MaxMessage {
		return nil, fmt.Errorf("sign gate list: %d bytes, at most %d", len(signed), wire.MaxMessage)
	}
	return signed, nil
}

// OpenGateList reads what Sign wrote, checking the signature before anything else.
func OpenGateList(signed []byte, pub ed25519.PublicKey) (GateList, error) {
	var s signedList
	if len(signed) > wire.MaxMessage {
		return GateList{}, fmt.Errorf("open gate list: %d bytes, at most %d", len(signed), wire.MaxMessage)
	}
	if err := decMode.Unmarshal(signed, &s); err != nil {
		return GateList{}, fmt.Errorf("open gate list: %w", err)
	}
	if len(pub) != ed25519.PublicKeySize || !ed25519.Verify(pub, append([]byte(signedAs), s.Body...), s.Signature) {
		return GateList{}, errors.New("open gate list: the signature is not the ledger's")
	}
	var l GateList
	if err := decMode.Unmarshal(s.Body, &l); err != nil {
		return GateList{}, fmt.Errorf("open gate list: %w", err)
	}
	if again, err := encMode.Marshal(l); err != nil || !bytes.Equal(again, s.Body) {
		return GateList{}, errors.New("open gate list: not in its one form")
	}
	return l, l.Validate()
}

// Validate returns an error when a device's id is not its key's, or a word is
// none of the roles and states.
func (l GateList) Validate() error {
	seen := make(map[ticket.Source]bool, len(l.Devices))
	for _, d := range l.Devices {
		id, err := wire.DeviceID(d.Key)
		switch {
		case err != nil:
			return fmt.Errorf("check gate list: %w", err)
		case id != d.Device:
			return fmt.Errorf("check gate list: device %s with the key of %s", d.Device, id)
		case seen[id]:
			return fmt.Errorf("check gate list: device %s twice", id)
		case d.Role != RoleGate && d.Role != RoleBroker:
			return fmt.Errorf("check gate list: device %s: role %q, want gate or broker", id, d.Role)
		case d.State != StateEnrolled && d.State != StateRevoked && d.State != StateLost:
			return fmt.Errorf("check gate list: device %s: state %q, want enrolled, revoked or lost", id, d.State)
		}
		seen[id] = true
	}
	return nil
}

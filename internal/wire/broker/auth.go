package broker

import (
	"encoding/base64"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// replyWithin is how long a device may answer a request that it was sent.
const replyWithin = time.Minute

// kind is what a key may do.
type kind uint8

const (
	gate     kind = iota + 1
	uploader      // a device that was replaced or lost: its records stay welcome, its voice is not
	ledger
	leaf // a venue's broker, seen from the hub
	self // this broker's own client
)

type user struct {
	kind   kind
	device ticket.Source
}

// register says who every key is, from the list in memory: a device enrolled
// while the broker runs needs no restart. It implements server.Authentication.
type register struct {
	mu    sync.RWMutex
	fixed map[string]user // ledgers and this broker itself
	list  map[string]user
}

func newRegister() *register {
	return &register{fixed: make(map[string]user), list: make(map[string]user)}
}

func (r *register) addFixed(key string, k kind) error {
	id, err := wire.DeviceID(key)
	if err != nil {
		return err
	}
	r.fixed[key] = user{kind: k, device: id}
	return nil
}

// replace takes a new list, and reports which keys may do something else now.
func (r *register) replace(l GateList) (changed map[string]bool) {
	next := make(map[string]user, len(l.Devices))
	for _, d := range l.Devices {
		switch {
		case d.Role == RoleGate && d.State == StateEnrolled:
			next[d.Key] = user{kind: gate, device: d.Device}
		case d.Role == RoleGate:
			next[d.Key] = user{kind: uploader, device: d.Device}
		case d.State == StateEnrolled:
			next[d.Key] = user{kind: leaf, device: d.Device}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = make(map[string]bool)
	for key, u := range r.list {
		if next[key] != u {
			changed[key] = true
		}
	}
	r.list = next
	return changed
}

func (r *register) find(key string) (user, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if u, ok := r.fixed[key]; ok {
		return u, true
	}
	u, ok := r.list[key]
	return u, ok
}

// Check admits a connection that proves a known key, with that key's permissions.
func (r *register) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	u, ok := r.find(o.Nkey)
	if !ok || !signed(o.Nkey, o.Sig, c.GetNonce()) {
		return false
	}
	if (c.Kind() == server.LEAF) != (u.kind == leaf) {
		return false
	}
	c.RegisterUser(&server.User{Username: o.Nkey, Permissions: permissions(u)})
	return true
}

func signed(key, sig string, nonce []byte) bool {
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil || len(nonce) == 0 {
		return false
	}
	pub, err := nkeys.FromPublicKey(key)
	return err == nil && pub.Verify(nonce, raw) == nil
}

// permissions are those of wire's subjects: everybody publishes below its own
// name only, hears what is for all or for itself, and answers what it was asked.
func permissions(u user) *server.Permissions {
	id := string(u.device)
	inbox := wire.InboxPrefix(u.device) + ".>"
	switch u.kind {
	case gate:
		return allow([]string{"gate." + id + ".>"}, []string{
			"gate.*.spend", "gate.*.head", "ledger.*.spend", "ledger.*.head",
			"gate.*.fetch." + id, "ledger.*.fetch." + id, inbox})
	case uploader:
		return allow([]string{"gate." + id + ".hello", "gate." + id + ".upload", "gate." + id + ".probe",
			"gate." + id + ".fetch.ledger"}, []string{"ledger.*.head", "ledger.*.fetch." + id, inbox})
	case ledger:
		return allow([]string{"ledger.>"}, []string{"gate.>", "broker.*.gates", inbox})
	case self:
		return allow([]string{"broker." + id + ".>"}, []string{"ledger.*.gates", inbox})
	}
	// A leaf speaks for the gates behind it, and cannot speak for the ledger.
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"ledger.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{">"}},
	}
}

func allow(publish, subscribe []string) *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: subscribe},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: replyWithin},
	}
}

package ticket

import "time"

// Programme is what is on: the ledger signs it, sends it weeks ahead if need be,
// and the highest version wins. A gate has no other source of events and keys.
type Programme struct {
	Version uint64           `json:"version" toml:"version" cbor:"1,keyasint"`
	Events  []ProgrammeEvent `json:"events" toml:"events" cbor:"2,keyasint"`
}

// ProgrammeEvent is one event of a programme. Times are inclusive at the start
// and exclusive at the end.
type ProgrammeEvent struct {
	ID       string    `json:"id" toml:"id" cbor:"1,keyasint"`
	Name     string    `json:"name,omitempty" toml:"name" cbor:"2,keyasint,omitempty"`
	Open     time.Time `json:"open" toml:"open" cbor:"3,keyasint"`     // doors
	Close    time.Time `json:"close" toml:"close" cbor:"4,keyasint"`   // last admission
	Forget   time.Time `json:"forget" toml:"forget" cbor:"5,keyasint"` // the ledger closes it for good then
	Sessions []Session `json:"sessions,omitempty" toml:"sessions" cbor:"6,keyasint,omitempty"`
	// Places says what each place lets in; none listed: every place serves the
	// event, with every zone and product.
	Places   []PlaceRule    `json:"places,omitempty" toml:"places" cbor:"7,keyasint,omitempty"`
	Products []string       `json:"products,omitempty" toml:"products" cbor:"8,keyasint,omitempty"` // none listed: any
	Formats  []string       `json:"formats" toml:"formats" cbor:"9,keyasint"`                       // "a1", "code"
	Keys     []ProgrammeKey `json:"keys,omitempty" toml:"keys" cbor:"10,keyasint,omitempty"`
	CodeKey  string         `json:"code_key,omitempty" toml:"code_key" cbor:"11,keyasint,omitempty"` // 64 hex digits: the hash key of the event's code list
}

// Session is a part of an event that a ticket may be limited to.
type Session struct {
	ID   string    `json:"id" toml:"id" cbor:"1,keyasint"`
	From time.Time `json:"from" toml:"from" cbor:"2,keyasint"`
	To   time.Time `json:"to" toml:"to" cbor:"3,keyasint"`
}

// PlaceRule is what one place lets in; an empty list lets in all.
type PlaceRule struct {
	Place    string   `json:"place" toml:"place" cbor:"1,keyasint"`
	Zones    []string `json:"zones,omitempty" toml:"zones" cbor:"2,keyasint,omitempty"`
	Products []string `json:"products,omitempty" toml:"products" cbor:"3,keyasint,omitempty"`
}

// ProgrammeKey is a public key that tickets of the event may be signed with.
type ProgrammeKey struct {
	ID     string `json:"id" toml:"id" cbor:"1,keyasint"`                         // 8 hex digits: the key id within tickets
	Public string `json:"public" toml:"public" cbor:"2,keyasint"`                 // 64 hex digits: Ed25519
	Demo   bool   `json:"demo,omitempty" toml:"demo" cbor:"3,keyasint,omitempty"` // refused unless the gate's configuration says demo = true
}

// Ticket is a ticket as its text says it, verified by its format.
type Ticket struct {
	Format    Format
	ID        ID
	Event     string
	Session   string // "": any
	Zone      string // "": any
	Product   string // "": any
	NotBefore time.Time
	Expires   time.Time
	Test      bool
	Entry     uint32
}

// Unit is what the ticket is admitted as.
func (t Ticket) Unit() Unit {
	return Unit{Event: t.Event, Format: t.Format, Ticket: t.ID, Entry: t.Entry}
}

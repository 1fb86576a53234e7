package ticket

import (
	"fmt"
	"time"
)

// State is where a claim stands; only its gate writes it.
type State uint8

// The states of a claim, in the order in which they win over each other when
// one (claim, rev) has two contents, which only a lost store can bring about.
const (
	Pending  State = 1 // claimed on disk, not decided or not passed yet
	Refused  State = 2 // never fired; frees the unit
	Annulled State = 3 // fired, nobody went through, or staff took it back; frees the unit
	Presumed State = 4 // the gate restarted in between; it may have fired
	Admitted State = 5 // somebody went through
)

var stateNames = [...]string{Pending: "pending", Refused: "refused", Annulled: "annulled", Presumed: "presumed", Admitted: "admitted"}

// String gives the name used in results and conflicts.
func (s State) String() string {
	if s == 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("state-%d", uint8(s))
	}
	return stateNames[s]
}

// MarshalText lets a state stand in JSON as its name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *State) UnmarshalText(b []byte) error {
	for i, n := range stateNames {
		if n != "" && n == string(b) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("unknown claim state %q", b)
}

// Class says how far a stamp's clock could be trusted.
type Class uint8

// The two classes; a trusted stamp sorts before an untrusted one.
const (
	Trusted   Class = 0 // synchronised since boot, by NTP or by the ledger
	Untrusted Class = 1 // the device's own idea of the time, held up by the floor
)

// String gives the word verdicts and conflicts use.
func (c Class) String() string {
	if c == Trusted {
		return "trusted"
	}
	return "untrusted"
}

// MarshalText lets a class stand in JSON as its word.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Class) UnmarshalText(b []byte) error {
	switch string(b) {
	case "trusted":
		*c = Trusted
	case "untrusted":
		*c = Untrusted
	default:
		return fmt.Errorf("unknown clock class %q", b)
	}
	return nil
}

// BootID is the kernel's random id of one boot.
type BootID [16]byte

// Stamp is a moment as a device saw it, with what is needed to judge or correct
// it later.
type Stamp struct {
	_     struct{} `cbor:",toarray"`
	Wall  int64    // Unix time in nanoseconds
	Boot  BootID   // the boot in which it was taken
	Up    int64    // nanoseconds since that boot (CLOCK_BOOTTIME)
	Class Class
	Bound int64 // how far Wall may be off, nanoseconds; for Untrusted: unknown, 0
}

// Time is the stamp's wall time, in UTC.
func (s Stamp) Time() time.Time { return time.Unix(0, s.Wall).UTC() }

// Ref names one revision of one claim.
type Ref struct {
	_     struct{} `cbor:",toarray"`
	Claim ClaimID
	Rev   uint32
}

// Claim is one revision of a claim: the whole claim as its gate saw it then.
// Revisions are immutable; the highest wins.
type Claim struct {
	ID      ClaimID       `cbor:"1,keyasint"`
	Rev     uint32        `cbor:"2,keyasint"`
	Unit    Unit          `cbor:"3,keyasint"`
	State   State         `cbor:"4,keyasint"`
	Claimed Stamp         `cbor:"5,keyasint"`           // when rev 0 was made
	At      int64         `cbor:"6,keyasint"`           // when this revision was made: Unix nanoseconds by the writer's clock; nothing orders by it
	Lane    string        `cbor:"7,keyasint,omitempty"` // the lane within the gate
	Place   string        `cbor:"8,keyasint"`           // the name people read
	Lease   time.Duration `cbor:"9,keyasint"`           // a pending claim known for longer is overdue
	Alone   bool          `cbor:"10,keyasint,omitempty"`
	After   []Ref         `cbor:"11,keyasint,omitempty"` // claims of this unit known as freed when rev 0 was made
	Reason  Reason        `cbor:"12,keyasint,omitempty"`
}

// EventType is the kind of a thing that happened at a gate besides claims.
type EventType string

// The events a gate records.
const (
	EventTailgate  EventType = "tailgate"  // a passage without a claim
	EventExit      EventType = "exit"      // somebody left; settles no entry
	EventStaff     EventType = "staff"     // a staff action, its detail says which
	EventEmergency EventType = "emergency" // emergency release or the turnstile's alarm
	EventMode      EventType = "mode"      // a change of mode; recorded before it acts
	EventFault     EventType = "fault"     // the gate could not find out, or a device failed
	EventClock     EventType = "clock"     // a step, a correction, a lowered floor
	EventSensor    EventType = "sensor"    // the passage sensor became suspect, or works again
	EventAmnesia   EventType = "amnesia"   // the store was new, set aside or reverted, and when it had caught up
	EventWrongCode EventType = "mismatch"  // the ledger knew the claim id with another unit
)

// Event is one thing that happened at a gate.
type Event struct {
	Type   EventType `cbor:"1,keyasint"`
	Stamp  Stamp     `cbor:"2,keyasint"`
	Lane   string    `cbor:"3,keyasint,omitempty"`
	Place  string    `cbor:"4,keyasint"`
	Claim  *ClaimID  `cbor:"5,keyasint,omitempty"`
	Detail string    `cbor:"6,keyasint,omitempty"` // at most MaxDetail bytes, see DetailOf
}

// Feed is one entry of the ledger's feeds. Version is per subject, given in the
// ledger's transaction; the highest of a subject wins. Exactly one of the
// pointers is set.
type Feed struct {
	Subject   string         `cbor:"1,keyasint"`
	Version   uint64         `cbor:"2,keyasint"`
	At        int64          `cbor:"3,keyasint"` // the ledger's time, Unix nanoseconds
	Revoke    *FeedRevoke    `cbor:"4,keyasint,omitempty"`
	Release   *FeedRelease   `cbor:"5,keyasint,omitempty"`
	Distrust  *FeedDistrust  `cbor:"6,keyasint,omitempty"`
	Programme *FeedProgramme `cbor:"7,keyasint,omitempty"`
	Codes     *FeedCodes     `cbor:"8,keyasint,omitempty"`
	Closed    *FeedClosed    `cbor:"9,keyasint,omitempty"`
	Gate      *FeedGate      `cbor:"10,keyasint,omitempty"`
}

// FeedRevoke revokes a ticket, or takes that back. Subject: RevokeSubject.
type FeedRevoke struct {
	Format  Format `cbor:"1,keyasint"`
	Ticket  ID     `cbor:"2,keyasint"`
	Revoked bool   `cbor:"3,keyasint"` // false: unrevoked
}

// FeedRelease is a supervisor's word that a claim, at this rev, no longer holds
// its unit. Subject: ReleaseSubject.
type FeedRelease struct {
	Claim ClaimID `cbor:"1,keyasint"`
	Rev   uint32  `cbor:"2,keyasint"`
	Unit  Unit    `cbor:"3,keyasint"`
}

// FeedDistrust says that a device was replaced or its key revoked: what it
// admits after Since raises an alarm. Subject: DistrustSubject.
type FeedDistrust struct {
	Device Source `cbor:"1,keyasint"`
	Since  int64  `cbor:"2,keyasint"` // Unix nanoseconds
	Reason string `cbor:"3,keyasint,omitempty"`
}

// FeedProgramme carries the signed programme. Subject: ProgrammeSubject; the
// version is the programme's own.
type FeedProgramme struct {
	Signed []byte `cbor:"1,keyasint"`
}

// FeedCodes is one chunk of an event's list of keyed code hashes: 16 bytes each,
// sorted over the whole list. Subject: CodesSubject; the version is the list's.
type FeedCodes struct {
	Event  string `cbor:"1,keyasint"`
	Chunk  int    `cbor:"2,keyasint"` // from 0
	Chunks int    `cbor:"3,keyasint"`
	Hashes []byte `cbor:"4,keyasint"`
}

// FeedClosed says that an event is over and its rows may go once they are
// received. Final. Subject: ClosedSubject.
type FeedClosed struct {
	Event string `cbor:"1,keyasint"`
}

// FeedGate enrols a device at a place, or marks it lost. Subject: GateSubject.
type FeedGate struct {
	Device Source `cbor:"1,keyasint"`
	Place  string `cbor:"2,keyasint"`
	Key    string `cbor:"3,keyasint"` // the device's public NKey
	Role   string `cbor:"4,keyasint"` // "gate" or "broker"
	State  string `cbor:"5,keyasint"` // "enrolled", "revoked" or "lost"
}

// Subjects of the feeds.
const ProgrammeSubject = "programme"

// RevokeSubject is the feed subject of a ticket's revocation.
func RevokeSubject(f Format, id ID) string { return "revoke/" + f.String() + "/" + id.String() }

// ReleaseSubject is the feed subject of a claim's release.
func ReleaseSubject(c ClaimID) string { return "release/" + c.String() }

// DistrustSubject is the feed subject of a device's distrust.
func DistrustSubject(d Source) string { return "distrust/" + string(d) }

// CodesSubject is the feed subject of one chunk of an event's code list.
func CodesSubject(event string, chunk int) string { return fmt.Sprintf("codes/%s/%d", event, chunk) }

// ClosedSubject is the feed subject of an event's end.
func ClosedSubject(event string) string { return "closed/" + event }

// GateSubject is the feed subject of a device's enrolment.
func GateSubject(d Source) string { return "gate/" + string(d) }

// Record is what sources write, upload and fetch: a claim's revision, an event
// or a feed entry, at a position of a run that is given inside the commit and
// never again. Exactly one of Claim, Event and Feed is set.
type Record struct {
	Source Source `cbor:"1,keyasint"`
	Run    Run    `cbor:"2,keyasint"`
	Pos    uint64 `cbor:"3,keyasint"` // 1, 2, 3 … within the run
	Claim  *Claim `cbor:"4,keyasint,omitempty"`
	Event  *Event `cbor:"5,keyasint,omitempty"`
	Feed   *Feed  `cbor:"6,keyasint,omitempty"`
}

// Stream is the run the record belongs to.
func (r Record) Stream() Stream { return Stream{Source: r.Source, Run: r.Run} }

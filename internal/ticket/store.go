package ticket

// What a gate's store answers, shared by the loop and the store, which do not
// know each other.

// Made is what an attempt to claim came to.
type Made struct {
	Reason Reason // OK: claimed; InProgress, AlreadyUsed, Revoked or Closed: not, and nothing was written
	Cite   Claim  // the claim that holds the unit, where not claimed
	Record Record // rev 0, where claimed
}

// Judge marks in a view what only the gate's loop can know: which pending claims
// are overdue.
type Judge func(*View)

// Learned is what a batch of arrivals changed in a store.
type Learned struct {
	Units     []Unit   // units whose view may have changed
	Programme []byte   // a newer signed programme, nil: none
	Codes     []string // events whose code list changed
	Closed    []string // events that are over
	Revoked   []ID     // tickets whose revocation changed
	Place     string   // where the ledger says this device stands now; "": nothing new
	Own       []Claim  // pending claims of this device that another store of it had written
	Aside     int      // records that could not be read, set aside
	Forked    []Claim  // revisions that exist with two contents: a store was lost
	Late      int      // records of closed events: passed over
}

// Floor is the clock floor: untrusted time never runs below it.
type Floor struct {
	Wall int64 // Unix nanoseconds
	Boot BootID
	Up   int64 // nanoseconds of that boot
}

// Saved is what a gate reads once at start.
type Saved struct {
	Mode      GateMode // "" where none was set
	Floor     Floor
	Programme []byte   // the signed programme of the highest version, nil: none
	Place     string   // where the ledger said last that this device stands; "": it never did
	LastEvent string   // the event that was on when the clock could last be trusted
	Closed    []string // events that the ledger closed
	Open      []Claim  // own claims that are pending
}

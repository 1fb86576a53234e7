package ticket

import "time"

// Arrival is a record that came from elsewhere. Record is nil where the bytes
// could not be read: then it is set aside under its position and blocks nothing.
type Arrival struct {
	Stream Stream
	Pos    uint64
	Raw    []byte
	Record *Record
}

// Answered is the ledger's answer to one ask.
type Answered struct {
	Claim     ClaimID
	Answer    Answer
	FirstAt   time.Time // of the claim to cite; zero where the answer names none
	FirstGate string
	First     ClaimID
	State     State
}

// Link is how a gate stands to the others, as far as deciding goes.
type Link struct {
	// Up: the ledger answered the last ask or probe. Otherwise it is suspect: it
	// is still asked, but nobody waits for it.
	Up bool

	// Peers: a peer was heard within the last 5 s.
	Peers bool

	// Alone: no ledger answer and no peer heard for 5 s.
	Alone bool

	// PeerPatience is how long to wait for peers' claims while only they are there:
	// at least 50 ms, and twice the measured delay.
	PeerPatience time.Duration
}

// Word is the link in one word, for status and heads.
func (l Link) Word() string {
	switch {
	case l.Up:
		return "up"
	case l.Alone:
		return "alone"
	case l.Peers:
		return "peers"
	}
	return "suspect"
}

// StreamPos is a position of one run of one source: a head, a cursor or a
// high-water, as its use says.
type StreamPos struct {
	_      struct{} `cbor:",toarray"`
	Source Source
	Run    Run
	Pos    uint64
	Base   uint64 // positions up to Base were pruned and cannot be fetched; 0: none
}

// Stream is the run that the position belongs to.
func (p StreamPos) Stream() Stream { return Stream{Source: p.Source, Run: p.Run} }

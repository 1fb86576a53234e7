package ticket

import (
	"encoding/json"
	"math"
	"time"
)

// Reason is one word of the closed list that verdicts and records use.
type Reason string

// The reasons. InProgress, Busy and CatchingUp are waits; all but OK of the rest
// are refusals.
const (
	OK             Reason = "ok"
	AlreadyUsed    Reason = "already_used"
	InProgress     Reason = "in_progress"
	Busy           Reason = "busy"
	Invalid        Reason = "invalid"         // no format accepts the text
	WrongEvent     Reason = "wrong_event"     // for an event that is not on now
	WrongSession   Reason = "wrong_session"   //
	WrongProduct   Reason = "wrong_product"   //
	WrongZone      Reason = "wrong_zone"      //
	NotYetValid    Reason = "not_yet_valid"   //
	Expired        Reason = "expired"         //
	Revoked        Reason = "revoked"         //
	Unknown        Reason = "unknown"         // well formed, but its key, event or code is not known
	TestTicket     Reason = "test_ticket"     // a test ticket outside mode test
	Closed         Reason = "closed"          // the gate is closed, or its event is not open
	Offline        Reason = "offline"         // no answer, and the policy refuses then
	ClockUntrusted Reason = "clock_untrusted" // a window cannot be judged, and the policy refuses then
	CatchingUp     Reason = "catching_up"     // the store was lost, and the policy waits
	NotReady       Reason = "not_ready"       // the turnstile or the programme
	Fault          Reason = "fault"           //

	Free Reason = "free" // only in claim records: spent in mode free, counts in no conflict
)

// Ruling is what a verdict tells the holder.
type Ruling string

// The three rulings.
const (
	Admit  Ruling = "admit"
	Refuse Ruling = "refuse"
	Wait   Ruling = "wait"
)

// Ruling is the one that belongs to the reason.
func (r Reason) Ruling() Ruling {
	switch r {
	case OK, Free:
		return Admit
	case InProgress, Busy, CatchingUp:
		return Wait
	}
	return Refuse
}

// GateMode is what a gate is set to do.
type GateMode string

// The modes of a gate.
const (
	ModeNormal GateMode = "normal"
	ModeClosed GateMode = "closed"
	ModeFree   GateMode = "free" // the turnstile is open; codes that pass are spent and marked
	ModeTest   GateMode = "test" // test tickets work lamp and relay; sold ones show their verdict only
)

// Valid reports whether the mode is one of the four.
func (m GateMode) Valid() bool {
	return m == ModeNormal || m == ModeClosed || m == ModeFree || m == ModeTest
}

// Verdict is one change of a presentation's verdict, as the gate's log, its event
// stream and gatectl print it.
type Verdict struct {
	Time      time.Time
	Gate      string // the place
	Lane      string
	Ticket    string // ID.String(), empty where no format accepted the text
	Verdict   Ruling
	Reason    Reason
	FirstSeen time.Time // of the claim that was there before; zero where none is known
	FirstGate string
	Claim     string
	Online    bool // the ledger answered this claim before the verdict
	GateMode  GateMode
	Clock     Class
	Took      time.Duration // from the frame's capture, or the line's arrival, to the verdict
}

type verdictJSON struct {
	Time      string   `json:"time"`
	Gate      string   `json:"gate"`
	Lane      string   `json:"lane"`
	Ticket    string   `json:"ticket"`
	Verdict   Ruling   `json:"verdict"`
	Reason    Reason   `json:"reason"`
	FirstSeen *string  `json:"first_seen"`
	FirstGate *string  `json:"first_gate"`
	Claim     string   `json:"claim"`
	Mode      string   `json:"mode"`
	GateMode  GateMode `json:"gate_mode"`
	Clock     Class    `json:"clock"`
	MS        float64  `json:"ms"`
}

// TimeFormat is how times stand in verdicts, results and the API: RFC 3339 in
// UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON gives the object that outsiders read (spec, section 10).
func (v Verdict) MarshalJSON() ([]byte, error) {
	j := verdictJSON{
		Time: v.Time.UTC().Format(TimeFormat), Gate: v.Gate, Lane: v.Lane, Ticket: v.Ticket,
		Verdict: v.Verdict, Reason: v.Reason, Claim: v.Claim, Mode: "offline",
		GateMode: v.GateMode, Clock: v.Clock, MS: float64(v.Took.Microseconds()) / 1000,
	}
	if v.Online {
		j.Mode = "online"
	}
	if !v.FirstSeen.IsZero() {
		s := v.FirstSeen.UTC().Format(TimeFormat)
		j.FirstSeen = &s
	}
	if v.FirstGate != "" {
		j.FirstGate = &v.FirstGate
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Verdict) UnmarshalJSON(b []byte) error {
	var j verdictJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*v = Verdict{Gate: j.Gate, Lane: j.Lane, Ticket: j.Ticket, Verdict: j.Verdict, Reason: j.Reason,
		Claim: j.Claim, Online: j.Mode == "online", GateMode: j.GateMode, Clock: j.Clock,
		Took: time.Duration(math.Round(j.MS*1000)) * time.Microsecond}
	var err error
	if v.Time, err = time.Parse(time.RFC3339Nano, j.Time); err != nil {
		return err
	}
	if j.FirstSeen != nil {
		if v.FirstSeen, err = time.Parse(time.RFC3339Nano, *j.FirstSeen); err != nil {
			return err
		}
	}
	if j.FirstGate != nil {
		v.FirstGate = *j.FirstGate
	}
	return nil
}

// Result is a claim's end at its gate: a line of results.jsonl.
type Result struct {
	Time   string `json:"time"` // TimeFormat
	Gate   string `json:"gate"`
	Claim  string `json:"claim"`
	Ticket string `json:"ticket"`
	Result State  `json:"result"` // admitted, annulled, refused or presumed
}

package ticket

// Answer is the ledger's word on one claim; stored once, never changed.
type Answer string

// The ledger's answers.
const (
	AnswerNone       Answer = ""            // not asked, or not answered yet
	AnswerFirst      Answer = "first"       //
	AnswerSeen       Answer = "seen"        // another claim holds the unit for good, or is overdue
	AnswerInProgress Answer = "in_progress" // another claim is pending; final for this claim
	AnswerRevoked    Answer = "revoked"     //
	AnswerUnknown    Answer = "unknown"     // the ledger knows no such event
	AnswerMismatch   Answer = "mismatch"    // the claim id stands with another unit
	AnswerSettled    Answer = "settled"     // the claim had ended before it was asked
)

// Case is everything that a decision about one's own pending claim depends on.
type Case struct {
	Own    ClaimID
	View   View // all that has arrived, own claim among it
	Answer Answer

	Looked        bool // the ticket was seen within look_valid
	InTime        bool // the claim is younger than fire_within
	Ready         bool // the turnstile
	Normal        bool // the mode admits (normal, or test for a test ticket)
	RefuseOffline bool // offline = refuse
}

// Step is what to do with one's own pending claim.
type Step uint8

// The steps.
const (
	Open   Step = iota + 1 // fire: mark, relay
	Deny                   // settle refused, and say so
	Yield                  // settle refused, wait in amber, and claim anew when the unit is free
	Stay                   // keep the claim pending, amber, decide again when another claim changes
	Forget                 // settle refused; nobody is there to be told
)

// Decision is a step with its reason and the claim to cite.
type Decision struct {
	Step   Step
	Reason Reason
	Cite   Claim // zero where there is none, or the ledger named none of which a record is here
}

// Decide is the decision of protocol.md, taken directly before the relay, after
// merging what has arrived.
func Decide(c Case) Decision {
	own, ok := c.View.Find(c.Own)
	if !ok || own.Claim.State != Pending {
		return Decision{Step: Deny, Reason: Fault}
	}
	foreign, held := c.View.Holder(c.Own)
	for _, k := range c.View.Claims {
		if k.Claim.ID != c.Own && k.Holds() && !k.FreshPending() {
			return Decision{Step: Deny, Reason: AlreadyUsed, Cite: foreign.Claim}
		}
	}
	if d, final := answered(c.Answer, foreign.Claim); final {
		return d
	}
	switch {
	case c.View.Revoked:
		return Decision{Step: Deny, Reason: Revoked}
	case !c.Looked || !c.InTime:
		return Decision{Step: Forget, Reason: InProgress}
	case !c.Ready:
		return Decision{Step: Deny, Reason: NotReady}
	case !c.Normal:
		return Decision{Step: Deny, Reason: Closed}
	case c.Answer == AnswerNone && c.RefuseOffline:
		return Decision{Step: Deny, Reason: Offline}
	case !held:
		return Decision{Step: Open, Reason: OK}
	case c.Answer == AnswerFirst && c.othersHeardTheLedger():
		return Decision{Step: Open, Reason: OK}
	case Compare(foreign.Claim, own.Claim) < 0:
		return Decision{Step: Yield, Reason: InProgress, Cite: foreign.Claim}
	}
	return Decision{Step: Stay, Reason: InProgress, Cite: foreign.Claim}
}

// othersHeardTheLedger reports whether no foreign pending claim may have opened
// without the ledger, which then ordered us before all of them.
func (c Case) othersHeardTheLedger() bool {
	for _, k := range c.View.Claims {
		if k.Claim.ID != c.Own && k.Holds() && k.Claim.Alone {
			return false
		}
	}
	return true
}

func answered(a Answer, cite Claim) (Decision, bool) {
	switch a {
	case AnswerNone, AnswerFirst:
		return Decision{}, false
	case AnswerSeen:
		return Decision{Step: Deny, Reason: AlreadyUsed, Cite: cite}, true
	case AnswerInProgress:
		return Decision{Step: Yield, Reason: InProgress, Cite: cite}, true
	case AnswerRevoked:
		return Decision{Step: Deny, Reason: Revoked}, true
	case AnswerUnknown:
		return Decision{Step: Deny, Reason: Unknown}, true
	}
	return Decision{Step: Deny, Reason: Fault}, true
}

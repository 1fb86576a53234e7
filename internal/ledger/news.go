package ledger

import (
	"fmt"
	"time"
)

// NewsType says what happened.
type NewsType string

// The types of news. Those of conflicts carry a Conflict, those of alarms an
// AlarmReport, each as it stands then: whoever gets them in another order takes the
// latest time.
const (
	ConflictAnnounced NewsType = "conflict.announced"
	ConflictAmended   NewsType = "conflict.amended"      // a side, its certainty or its order changed, or it is derived again
	ConflictNoted     NewsType = "conflict.acknowledged" // somebody dealt with it
	ConflictGone      NewsType = "conflict.withdrawn"
	AlarmRaised       NewsType = "alarm.raised"
	AlarmOver         NewsType = "alarm.over"
)

// News is what other systems may be told of the ledger.
type News struct {
	Type NewsType
	At   time.Time // by the ledger's clock
	Data any       // Conflict or AlarmReport
}

// tell passes news on within the transaction that makes them true.
func (t *txn) tell(kind NewsType, data any) error {
	if t.l.opt.Tell == nil {
		return nil
	}
	if err := t.l.opt.Tell(t.Tx, News{Type: kind, At: t.now, Data: data}); err != nil {
		return fmt.Errorf("tell %s: %w", kind, err)
	}
	return nil
}

func (t *txn) tellConflict(known bool, now ConflictRow) error {
	kind := ConflictAmended
	switch {
	case !known:
		kind = ConflictAnnounced
	case now.State == ConflictWithdrawn:
		kind = ConflictGone
	}
	return t.tell(kind, now.Report())
}

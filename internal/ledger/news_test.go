package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/office"
	"admitone/internal/ticket"
)

// telling opens a ledger on the rig's store that writes its news into rows of the
// transaction they come in; fail makes it refuse.
func (r *rig) telling(fail *error) *rig {
	n := 0
	l, err := ledger.New(ledgertest.Twice(r.store), ledger.Options{
		Process: "b", Now: r.clock.now, Log: slog.New(slog.NewTextHandler(r.log, nil)), ProgrammeKey: key(),
		Tell: func(tx ledger.Tx, news ledger.News) error {
			body, err := json.Marshal(news)
			if err != nil {
				return err
			}
			n++
			return errors.Join(*fail, tx.(office.Tx).Put(office.Row{Table: "news", ID: fmt.Sprintf("%04d", n), List: "all", Body: body}))
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	told := *r
	told.Ledger = l
	return &told
}

// news gives the types of what was told and committed, and the last one's data.
func (r *rig) news() (types []ledger.NewsType, last ledger.Conflict) {
	r.t.Helper()
	err := r.store.Books().View(context.Background(), func(tx office.Tx) error {
		rows, _, err := tx.Page("news", "all", "", 1000)
		for _, row := range rows {
			var n struct {
				Type ledger.NewsType
				Data json.RawMessage
			}
			err = errors.Join(err, json.Unmarshal(row.Body, &n))
			types = append(types, n.Type)
			last = ledger.Conflict{}
			json.Unmarshal(n.Data, &last)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return types, last
}

// TestNewsAreToldWithWhatTheyTell: once each, in the transaction, as things stand
// then.
func TestNewsAreToldWithWhatTheyTell(t *testing.T) {
	var fail error
	r := newRig(t).telling(&fail)
	want := func(types ...ledger.NewsType) (last ledger.Conflict) {
		t.Helper()
		got, last := r.news()
		if !slices.Equal(got, types) {
			t.Fatalf("told %v, want %v", got, types)
		}
		return last
	}
	a, b, _, cb := double(r, unit(1))
	r.upload(b, 1)
	want()
	r.upload(a, 1)
	c := want(ledger.ConflictAnnounced)
	if c.ID != ticket.ConflictID(unit(1)) || c.State != ledger.ConflictOpen || len(c.Others) != 1 {
		t.Errorf("told %+v", c)
	}
	r.upload(a, 1) // again: nothing changed
	for range 2 {
		if _, err := r.Acknowledge(t.Context(), c.ID, "seen", "ops"); err != nil {
			t.Fatal(err)
		}
	}
	if c := want(ledger.ConflictAnnounced, ledger.ConflictNoted); c.State != ledger.ConflictAcknowledged || c.Note != "seen" {
		t.Errorf("told %+v", c)
	}
	third := newGate("ccc", r.clock)
	third.revise(third.claim(unit(1)), ticket.Admitted)
	r.upload(third, 1)
	if c := want(ledger.ConflictAnnounced, ledger.ConflictNoted, ledger.ConflictAmended); c.State != ledger.ConflictOpen || len(c.Others) != 2 {
		t.Errorf("told %+v", c)
	}
	b.revise(cb, ticket.Annulled)
	r.upload(b, 1)
	if got, _ := r.news(); got[len(got)-1] != ledger.ConflictAmended || len(got) != 4 {
		t.Errorf("told %v", got)
	}
}

func TestWithdrawnAndAlarmsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fail error
		r := newRig(t).telling(&fail)
		a, b, _, cb := double(r, unit(1))
		r.upload(a, 1)
		r.upload(b, 1)
		b.revise(cb, ticket.Annulled)
		r.upload(b, 1)
		late := newGate("late", r.clock)
		open := late.claim(unit(2))
		r.want(late, open, ticket.AnswerFirst)
		r.clock.add(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		<-time.After(2 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		late.revise(open, ticket.Admitted)
		r.upload(late, 1)
		got, _ := r.news()
		if want := []ledger.NewsType{ledger.ConflictAnnounced, ledger.ConflictGone, ledger.AlarmRaised, ledger.AlarmOver}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	})
}

// TestWhatCannotBeToldDoesNotHappen: the transaction fails with its news, and goes
// through when they can be told.
func TestWhatCannotBeToldDoesNotHappen(t *testing.T) {
	fail := errors.New("no room")
	r := newRig(t).telling(&fail)
	a, b, _, _ := double(r, unit(1))
	r.upload(b, 1)
	_, err := r.Upload(t.Context(), a.src, ledger.Upload{Run: a.run, From: 1, Records: a.log})
	if types, _ := r.news(); !errors.Is(err, fail) || len(types) != 0 || len(r.conflicts()) != 0 {
		t.Errorf("upload: %v; told %v, conflicts %+v", err, types, r.conflicts())
	}
	fail = nil
	r.upload(a, 1)
	if types, _ := r.news(); len(types) != 1 || len(r.conflicts()) != 1 {
		t.Errorf("told %v, conflicts %+v, want one each", types, r.conflicts())
	}
}

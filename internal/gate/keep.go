package gate

import (
	"context"
	"time"

	"admitone/internal/ticket"
)

// Sizes of the background's transactions: small enough that a claim never waits
// long behind one.
const (
	correctBatch = 64
	pruneBatch   = 256
)

// keepUp corrects the times of claims once the clock is trusted, and prunes
// events that are over.
func (g *Gate) keepUp(ctx context.Context) error {
	every := time.NewTicker(time.Minute)
	defer every.Stop()
	for {
		if _, class := g.o.Clock.Now(); class == ticket.Trusted {
			if err := g.correct(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if err := g.prune(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.learned:
		case <-every.C:
		}
	}
}

func (g *Gate) correct(ctx context.Context) error {
	for {
		recs, err := g.store.Correct(ctx, g.o.Clock.o.Boot, correctBatch, g.o.Clock.Correct)
		if err != nil || len(recs) == 0 {
			return err
		}
		for _, r := range recs {
			g.wire.Publish(r)
		}
		g.o.Log.Info("corrected the times of claims", "count", len(recs))
	}
}

func (g *Gate) prune(ctx context.Context) error {
	var events []string
	err := g.call(ctx, func(context.Context) error {
		for e := range g.closed {
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range events {
		for more := true; more; {
			if more, err = g.store.Prune(ctx, e, pruneBatch); err != nil {
				return err
			}
		}
	}
	return nil
}

package wire

import "admitone/internal/ticket"

// onFetch gives a peer, or the ledger, what it asks for of what is held here. The
// subscription runs one at a time, so that a herd costs no more than its turn.
func (g *Gate) onFetch(m Msg) {
	from, ok := author(m.Subject)
	if !ok || m.Respond == nil {
		return
	}
	if !isLedger(from) {
		g.peerHeard(from)
	}
	var f Fetch
	if err := decode(m.Data, &f); err != nil {
		g.count.unreadable.Add(1)
		return
	}
	r, err := g.answerFetch(f)
	if err != nil {
		g.complain("fetch could not be answered", err)
		return
	}
	data, err := encode(r)
	if err != nil {
		g.complain("fetch could not be answered", err)
		return
	}
	if m.Respond(data) == nil {
		g.count.served.Add(1)
	}
}

func (g *Gate) answerFetch(f Fetch) (FetchReply, error) {
	s := ticket.Stream{Source: f.Source, Run: f.Run}
	switch {
	case f.Run != 0 && f.Beyond:
		recs, from, err := g.store.Beyond(s, f.After, clamp(f.Limit, FetchMax), maxBatchBytes)
		return FetchReply{From: from, Records: recs}, err
	case f.Run != 0:
		recs, from, base, head, err := g.store.Read(s, f.After, clamp(f.Limit, FetchMax), maxBatchBytes)
		return FetchReply{Base: base, Head: head, From: from, Records: recs}, err
	case f.Limit <= 0:
		return FetchReply{}, nil
	case f.Beyond:
		tops, err := g.store.Tops(f.Source)
		return FetchReply{Held: heldOf(f.Source, clamp(f.Limit, maxStreamsList), tops)}, err
	}
	own, cursors, err := g.positions()
	if err != nil {
		return FetchReply{}, err
	}
	return FetchReply{Held: heldOf(f.Source, clamp(f.Limit, maxStreamsList), own, cursors)}, nil
}

// heldOf lists up to limit runs of a source, "" meaning all.
func heldOf(source ticket.Source, limit int, lists ...[]StreamPos) []StreamPos {
	var held []StreamPos
	for _, list := range lists {
		for _, p := range list {
			if len(held) < limit && (source == "" || p.Source == source) {
				held = append(held, p)
			}
		}
	}
	return held
}

func clamp(n, most int) int {
	if n <= 0 || n > most {
		return most
	}
	return n
}

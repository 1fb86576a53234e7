package wire

import (
	"sync"
	"time"

	"admitone/internal/ticket"
)

// Times of the link state (protocol.md, "Decision").
const (
	heardFor      = 5 * time.Second // how long a peer's or the ledger's word lasts
	leastPatience = 50 * time.Millisecond
	delaysKept    = 8 // measurements of peers' delay that count
	maxPeers      = 1024
)

// linkState is how the gate stands to the ledger and its peers. Times are of
// package time: monotonic, whatever the wall clock does.
type linkState struct {
	most time.Duration // peers are given no more than this

	mu        sync.Mutex
	connected bool
	since     time.Time // of connected
	up        bool
	ledgerAt  time.Time // the ledger's last answer
	provedAt  time.Time // its last answer to an ask or a probe
	doubted   bool      // the last ask or probe was not answered
	peerAt    time.Time // the last message of any peer
	peers     map[ticket.Source]*peer
	delays    [delaysKept]time.Duration // round trips to peers, the newest ones
	measured  int
	shown     ticket.Link
}

// peer is another gate as this one hears it.
type peer struct {
	heard time.Time // its last message
	held  time.Time // when it last listed what it holds; zero: not since it was asked to
	tried time.Time // when it was last asked to list what it holds
	asked time.Time // when it was asked for this gate's own runs; far ahead once it told
	timed time.Time // when its delay was last measured
}

func newLinkState(now time.Time, most time.Duration) *linkState {
	return &linkState{most: most, since: now, ledgerAt: now, peerAt: now, peers: make(map[ticket.Source]*peer)}
}

// link gives the state at a moment. At the start nobody is taken as gone before
// they had 5 s to be heard.
func (l *linkState) link(now time.Time) ticket.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view(now)
}

func (l *linkState) view(now time.Time) ticket.Link {
	heard := len(l.peers) > 0 && now.Sub(l.peerAt) < heardFor
	return ticket.Link{
		Up:           l.up,
		Peers:        heard,
		Alone:        !l.up && now.Sub(l.ledgerAt) >= heardFor && now.Sub(l.peerAt) >= heardFor,
		PeerPatience: l.patience(),
	}
}

// patience is twice the largest of the last one-way delays to peers, which is
// their round trip, and at least 50 ms; at most what the ledger is given, so that
// a slow network cannot hold a verdict up for longer.
func (l *linkState) patience() time.Duration {
	d := leastPatience
	for _, rtt := range l.delays {
		d = max(d, rtt)
	}
	return min(d, max(l.most, leastPatience))
}

// changed reports whether the state is another than it last reported, but for
// the patience, and how long it can stay as it is by itself.
func (l *linkState) changed(now time.Time) (changed bool, next time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.view(now)
	changed = v.Up != l.shown.Up || v.Peers != l.shown.Peers || v.Alone != l.shown.Alone
	l.shown = v
	next = heardFor
	for _, t := range []time.Time{l.peerAt, l.ledgerAt} {
		if left := t.Add(heardFor).Sub(now); left > 0 {
			next = min(next, left)
		}
	}
	return changed, next
}

func (l *linkState) setConnected(now time.Time, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected, l.since = connected, now
	if !connected {
		l.up = false
	}
}

// answered notes an answer of the ledger, to an ask or a probe (proof) or to
// anything else, and reports whether it made the link up. After an ask that was
// not answered only proof does: a ledger that takes uploads may still answer no
// asks.
func (l *linkState) answered(now time.Time, proof bool) (rose bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledgerAt = now
	if proof {
		l.provedAt, l.doubted = now, false
	}
	rose = !l.up && !l.doubted
	l.up = l.up || rose
	return rose
}

// unanswered notes that an ask or a probe made at a moment got no answer in time:
// the link is suspect, unless an ask or a probe was answered since.
func (l *linkState) unanswered(asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.provedAt.After(asked) {
		l.up, l.doubted = false, true
	}
}

// silence gives how long the ledger has answered no ask and no probe, and whether
// the link is up and connected.
func (l *linkState) silence(now time.Time) (d time.Duration, up, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.provedAt), l.up, l.connected
}

// heard notes a message of a peer.
func (l *linkState) heard(now time.Time, from ticket.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[from]
	if p == nil {
		l.makeRoom()
		p = &peer{}
		l.peers[from] = p
	}
	p.heard, l.peerAt = now, now
}

// makeRoom forgets the peer heard longest ago when there are too many.
func (l *linkState) makeRoom() {
	if len(l.peers) < maxPeers {
		return
	}
	var oldest ticket.Source
	for s, p := range l.peers {
		if oldest == "" || p.heard.Before(l.peers[oldest].heard) {
			oldest = s
		}
	}
	delete(l.peers, oldest)
}

// isHeard reports whether a peer was heard within the last 5 s.
func (l *linkState) isHeard(now time.Time, s ticket.Source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[s]
	return p != nil && now.Sub(p.heard) < heardFor
}

// pick gives, of the peers heard within the last 5 s, the one for which the time
// that of returns is the longest ago, if that is at least every ago, and sets it.
func (l *linkState) pick(now time.Time, every time.Duration, of func(*peer) *time.Time) (ticket.Source, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var best ticket.Source
	for s, p := range l.peers {
		t := *of(p)
		if now.Sub(p.heard) >= heardFor || !t.IsZero() && now.Sub(t) < every {
			continue
		}
		if best == "" || t.Before(*of(l.peers[best])) || t.Equal(*of(l.peers[best])) && s < best {
			best = s
		}
	}
	if best == "" {
		return "", false
	}
	*of(l.peers[best]) = now
	return best, true
}

// measure notes a peer's round trip.
func (l *linkState) measure(rtt time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delays[l.measured%delaysKept] = rtt
	l.measured++
}

// listed notes that a peer told all that it holds.
func (l *linkState) listed(now time.Time, s ticket.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[s]; p != nil {
		p.held = now
	}
}

// toldOwn notes that a peer told what it holds of this gate's own runs: it is not
// asked again.
func (l *linkState) toldOwn(now time.Time, s ticket.Source) {
	const ever = 100 * 365 * 24 * time.Hour
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[s]; p != nil {
		p.asked = now.Add(ever)
	}
}

// peersListed reports whether there are peers, all of those heard within the last
// 5 s have listed what they hold, and there were 5 s to hear them in.
func (l *linkState) peersListed(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, p := range l.peers {
		if now.Sub(p.heard) >= heardFor {
			continue
		}
		if p.held.IsZero() {
			return false
		}
		n++
	}
	return n > 0 && l.connected && now.Sub(l.since) >= heardFor
}

// forgetLists has all peers list again what they hold.
func (l *linkState) forgetLists() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		p.held, p.tried = time.Time{}, time.Time{}
	}
}

// others lists the peers heard within the last 5 s but for one, in no order.
func (l *linkState) others(now time.Time, but ticket.Source) []ticket.Source {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []ticket.Source
	for s, p := range l.peers {
		if s != but && now.Sub(p.heard) < heardFor {
			list = append(list, s)
		}
	}
	return list
}

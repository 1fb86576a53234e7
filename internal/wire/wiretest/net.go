package wiretest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// Link is how one line behaves, in both directions.
type Link struct {
	Delay     time.Duration // each way
	Jitter    time.Duration // added to Delay, evenly between 0 and this; keeps the order
	Drop      float64       // probability, of each message
	Duplicate float64
	Reorder   float64 // probability of not waiting for the messages before it
	Cut       bool    // no connection, and its ends know
	Hang      bool    // nothing passes, and the ends do not know
	Deaf      bool    // of a node: nothing comes in, and it does not know
}

// Net is one network: connections stand at sites, each with a link to its site's
// broker; each site has an uplink to the hub. Sites go on within themselves when
// the uplink is cut, as a leaf broker does.
type Net struct {
	mu    sync.Mutex
	rng   *rand.Rand
	conns []*Conn
	sites map[string]Link
	start time.Time
	sent  int
}

// NewNet makes a network; the seed decides what is lost, repeated and reordered.
func NewNet(seed uint64) *Net {
	return &Net{rng: rand.New(rand.NewPCG(seed, 1)), sites: make(map[string]Link), start: time.Now()}
}

// Conn connects a node at the hub.
func (n *Net) Conn(id string) *Conn { return n.ConnAt("", id) }

// ConnAt connects a node at a site; "" is the hub.
func (n *Net) ConnAt(site, id string) *Conn {
	c := newConn(n, site, id)
	n.mu.Lock()
	n.conns = append(n.conns, c)
	n.mu.Unlock()
	go c.deliver()
	return c
}

// SetUplink changes the link between a site and the hub. Its nodes do not notice.
func (n *Net) SetUplink(site string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sites[site] = l
}

// Close closes all connections and waits for what they run.
func (n *Net) Close() {
	n.mu.Lock()
	conns := n.conns
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// Sent counts the messages handed to the network, replies among them.
func (n *Net) Sent() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent
}

// path lists the links between two nodes.
func (n *Net) path(a, b *Conn) []Link {
	links := []Link{a.link, b.link}
	if a.site == b.site {
		return links
	}
	if a.site != "" {
		links = append(links, n.sites[a.site])
	}
	if b.site != "" {
		links = append(links, n.sites[b.site])
	}
	return links
}

// reach reports whether interest in a subject is known over the path: a cut link
// takes it away, a hung one does not.
func reach(path []Link) bool {
	for _, l := range path {
		if l.Cut {
			return false
		}
	}
	return true
}

// lost reports whether nothing gets through at the moment.
func lost(path []Link) bool {
	for _, l := range path {
		if l.Cut || l.Hang {
			return true
		}
	}
	return false
}

// send hands a message to every subscription that wants it, and reports whether
// there was any. n.mu is held.
func (n *Net) send(from *Conn, m message) (heard bool) {
	n.sent++
	groups := make(map[string][]target)
	for _, c := range n.conns {
		if c == from || !reach(n.path(from, c)) {
			continue
		}
		for _, s := range c.subs {
			if !match(s.subject, m.subject) {
				continue
			}
			t := target{c, s}
			if s.queue == "" {
				heard = true
				n.carry(from, t, m)
				continue
			}
			groups[s.queue+" "+s.subject] = append(groups[s.queue+" "+s.subject], t)
		}
	}
	for _, g := range groups {
		heard = true
		n.carry(from, g[n.rng.IntN(len(g))], m)
	}
	return heard
}

type target struct {
	conn *Conn
	sub  *sub
}

// carry puts one message on its way to one subscription.
func (n *Net) carry(from *Conn, t target, m message) {
	copies, reorder := 1, false
	var delay time.Duration
	for _, l := range n.path(from, t.conn) {
		delay += l.Delay
		if l.Jitter > 0 {
			delay += time.Duration(n.rng.Int64N(int64(l.Jitter) + 1))
		}
		if l.Hang || n.rng.Float64() < l.Drop {
			return
		}
		if n.rng.Float64() < l.Duplicate {
			copies++
		}
		reorder = reorder || n.rng.Float64() < l.Reorder
	}
	at := time.Since(n.start) + delay
	if last := t.conn.lastFrom[from]; !reorder && at < last {
		at = last
	}
	if !reorder {
		t.conn.lastFrom[from] = at
	}
	for range copies {
		t.conn.push(delivery{at: at, sub: t.sub, from: from, m: m})
	}
}

// match reports whether a subject fits a pattern: "*" stands for one token, ">"
// at the end for one or more.
func match(pattern, subject string) bool {
	for {
		p, prest, pmore := strings.Cut(pattern, ".")
		s, srest, smore := strings.Cut(subject, ".")
		switch {
		case p == ">" && !pmore:
			return s != ""
		case p != "*" && p != s:
			return false
		case !pmore && !smore:
			return true
		case pmore != smore:
			return false
		}
		pattern, subject = prest, srest
	}
}

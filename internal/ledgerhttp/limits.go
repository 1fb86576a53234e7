package ledgerhttp

import (
	"cmp"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of how much is answered. Those of a caller protect the others from a
// program in a loop; that of failures keeps a guesser from filling the log.
type Limits struct {
	Rate     float64 // requests a second that one caller, signer or source may go on sending; 0: no limit
	Burst    int     // and at once; default 2 s of Rate
	Failures float64 // requests a minute from one address without a valid key or signature; 0: no limit
}

// maxTracked bounds how many callers or addresses are told apart at a time.
const maxTracked = 10_000

// pace is a token bucket for each of many names.
type pace struct {
	limit rate.Limit
	burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func newPace(perSecond float64, burst int) *pace {
	return &pace{limit: rate.Limit(perSecond), burst: burst, of: map[string]*rate.Limiter{}}
}

// take counts one request of a name, and gives how long it should have waited: 0
// where it is within the limit. What is refused does not count.
func (p *pace) take(name string, now time.Time) time.Duration {
	if p.limit <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.of[name]
	if !ok {
		p.makeRoom(now)
		l = rate.NewLimiter(p.limit, p.burst)
		p.of[name] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// makeRoom forgets those whose bucket is full again, and everybody where that is
// not enough: better a few requests too many than memory without end.
func (p *pace) makeRoom(now time.Time) {
	if len(p.of) < maxTracked {
		return
	}
	for name, l := range p.of {
		if l.TokensAt(now) >= float64(p.burst) {
			delete(p.of, name)
		}
	}
	if len(p.of) >= maxTracked {
		clear(p.of)
	}
}

func newPaces(l Limits) (callers, failures *pace) {
	return newPace(l.Rate, cmp.Or(l.Burst, max(1, int(2*l.Rate)))), newPace(l.Failures/60, max(1, int(l.Failures)))
}

// paced counts a request of somebody who is known.
func (s *Server) paced(who string) *Problem {
	wait := s.callers.take(who, s.opt.Now())
	if wait == 0 {
		return nil
	}
	return tooMany(wait, "%q sends more requests than the ledger's configuration allows ([http] rate)", who)
}

// failed counts a request that nobody known sent, and gives the problem to answer.
// Only those are limited, never a good key from the same address: behind a proxy all
// have one address, and a guesser there must not shut the others out.
func (s *Server) failed(r *http.Request, p *Problem) *Problem {
	if p == nil || p.Status != http.StatusUnauthorized {
		return p
	}
	if wait := s.failures.take(origin(r.RemoteAddr), s.opt.Now()); wait > 0 {
		return tooMany(wait, "too many requests without a valid key or signature came from your address")
	}
	return p
}

// origin is what failures are counted by: the address, of IPv6 the first 64 bits,
// which one subscriber has.
func origin(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	bits := 32
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		bits = 64
	}
	net, err := addr.Prefix(bits)
	if err != nil {
		return host
	}
	return net.String()
}

func tooMany(wait time.Duration, detail string, args ...any) *Problem {
	p := problem(tooOften, detail, args...)
	p.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
	return p
}

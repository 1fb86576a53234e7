package config

import (
	"fmt"
	"slices"
	"time"
)

// OnRepeat says what a second request with the same key gets.
type OnRepeat string

// The two answers to a repeat.
const (
	OnRepeatEcho   OnRepeat = "echo"   // the first result again
	OnRepeatRefuse OnRepeat = "refuse" // that it was done, and when
)

func (OnRepeat) allowed() []string { return []string{string(OnRepeatEcho), string(OnRepeatRefuse)} }

// PolicyRow is a row of the policy table (specification, section 7): how an endpoint
// of the box office answers a repeat, and for how long.
type PolicyRow struct {
	Endpoint     string   `toml:"endpoint"`                // one of PolicyEndpoints
	OnRepeat     OnRepeat `toml:"on_repeat,omitempty"`     // default echo
	Remember     Duration `toml:"remember,omitempty"`      // default 24h; after it the key is a new intent
	RepeatStatus int      `toml:"repeat_status,omitempty"` // of a repeat that is refused: 200 or 409, the default
}

func (p *PolicyRow) setDefaults() {
	*p = PolicyRow{OnRepeat: OnRepeatEcho, Remember: Duration(24 * time.Hour), RepeatStatus: 409}
}

// PolicyEndpoints are the endpoints whose rows are configured: POST /v1/orders, and
// POST /v1/orders/{id}/refund.
func PolicyEndpoints() []string { return []string{"orders", "refunds"} }

// fixedEndpoints are the others, with what decides about them.
func fixedEndpoints() map[string]string {
	const safety, event = "no gate could rely on it otherwise", "it lives as long as its event"
	return map[string]string{
		"tickets": safety, "ticket": safety, "asks": safety, "ask": safety, "uploads": safety, "upload": safety,
		"claims": event, "annuls": event, "acknowledgements": event,
		"nonces":   "it lives as long as its signature is good",
		"webhooks": "each source has its own, in [[webhook]]",
	}
}

// Acquirer is the payment service that charges cards.
type Acquirer struct {
	URL     string   `toml:"url,omitempty"`     // what is asked by POST, see internal/acquirer; "": no cards
	Key     string   `toml:"key,omitempty"`     // a file, mode 0600, with the bearer key for it; "": none
	Timeout Duration `toml:"timeout,omitempty"` // of one request; default 20s
	Default bool     `toml:"default,omitempty"` // orders that name no payment are paid by card
}

func (a *Acquirer) setDefaults() { *a = Acquirer{Timeout: Duration(20 * time.Second)} }

func (l *Ledger) checkOffice(r *report) {
	rows := map[string]int{}
	for i, p := range l.Policies {
		at := index("policy", i)
		why, fixed := fixedEndpoints()[p.Endpoint]
		switch {
		case fixed:
			r.addf(at+".endpoint", "remove this row", "%s is fixed: %s", show(p.Endpoint), why)
		case !slices.Contains(PolicyEndpoints(), p.Endpoint):
			r.addf(at+".endpoint", "write one of "+quoted(PolicyEndpoints()), "%s is no endpoint with a policy", show(p.Endpoint))
		}
		r.unique(at+".endpoint", p.Endpoint, "policy", rows, i)
		if p.Remember <= 0 {
			r.add(at+".remember", "a key that is forgotten at once protects nothing", `write for how long a client may retry, as in "24h"`)
		}
		if p.RepeatStatus != 200 && p.RepeatStatus != 409 {
			r.addf(at+".repeat_status", "write 200 or 409", "%d is no answer to a repeat", p.RepeatStatus)
		}
	}
	a := l.Acquirer
	if a.URL == "" {
		r.absent("acquirer.default", a.Default, "there is no acquirer", "set acquirer.url")
		return
	}
	r.receiver("acquirer.url", a.URL)
	switch {
	case a.Key == "":
	case !exists(a.Key):
		r.addf("acquirer.key", "put the service's bearer key there, with mode 0600", "there is no file %s", a.Key)
	default:
		r.secret("acquirer.key", a.Key)
	}
	if a.Timeout < Duration(time.Second) || a.Timeout > Duration(5*time.Minute) {
		r.add("acquirer.timeout", fmt.Sprintf("%s is too short or too long", a.Timeout), `write 1s to 5m`)
	}
}

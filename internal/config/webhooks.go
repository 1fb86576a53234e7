package config

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"admitone/internal/webhook"
)

// Limits bound what one caller can ask of the API.
type Limits struct {
	Rate     int `toml:"rate,omitempty"`     // requests a second that one caller, signer or source may go on sending; default 1000
	Burst    int `toml:"burst,omitempty"`    // and at once; default 2000
	Failures int `toml:"failures,omitempty"` // requests a minute from one address without a valid key or signature; default 600
}

func (l *Limits) setDefaults() { *l = Limits{Rate: 1000, Burst: 2000, Failures: 600} }

func (l Limits) check(r *report) {
	for _, n := range []struct {
		key   string
		value int
	}{{"rate", l.Rate}, {"burst", l.Burst}, {"failures", l.Failures}} {
		if n.value < 0 {
			r.addf("http.limits."+n.key, "write 0 for no limit, or more", "%d is less than nothing", n.value)
		}
	}
}

// Timestamp says what a sender of webhooks does when it tries again.
type Timestamp string

// The two kinds of senders.
const (
	Renewed Timestamp = "renewed" // signs each try anew, as Standard Webhooks says
	Kept    Timestamp = "kept"    // sends the first one's bytes again
)

func (Timestamp) allowed() []string { return []string{string(Renewed), string(Kept)} }

// Webhook is a system that sends webhooks to POST /v1/webhooks/SOURCE, and its row
// of the policy table (specification, section 7).
type Webhook struct {
	Source    string    `toml:"source"`
	Secrets   string    `toml:"secrets"`             // a file, mode 0600: whsec_… a line, all of them good
	Timestamp Timestamp `toml:"timestamp,omitempty"` // default renewed

	// Remember is how long an id is refused: by default 168h where the timestamp is
	// renewed. Where it is kept it must be absent: the signature's window it is.
	Remember     Duration `toml:"remember,omitempty"`
	RepeatStatus int      `toml:"repeat_status,omitempty"` // 200 or 409; default 200 where the timestamp is renewed, else 409
}

// Notify is a system that is told of conflicts and alarms by webhooks.
type Notify struct {
	Name    string   `toml:"name"`
	URL     string   `toml:"url"`               // https; http only to this host
	Secrets string   `toml:"secrets"`           // a file, as that of a webhook; each of them signs
	Types   []string `toml:"types,omitempty"`   // as in "conflict.announced"; default all
	GiveUp  Duration `toml:"give_up,omitempty"` // after that long; default 72h
}

// NotifyTypes are the messages that a system can be told.
func NotifyTypes() []string {
	return []string{"conflict.announced", "conflict.amended", "conflict.acknowledged", "conflict.withdrawn", "alarm.raised", "alarm.over"}
}

// minRemember keeps an id for longer than any signature on it could be accepted.
const minRemember = Duration(2 * webhook.Window)

func (w *Webhook) setDefaults() { *w = Webhook{Timestamp: Renewed} }
func (n *Notify) setDefaults()  { *n = Notify{GiveUp: Duration(72 * time.Hour)} }

// complete gives a source the row of its kind of sender.
func (w *Webhook) complete() {
	status, remember := 409, Duration(0)
	if w.Timestamp == Renewed {
		status, remember = 200, Duration(7*24*time.Hour)
	}
	if w.RepeatStatus == 0 {
		w.RepeatStatus = status
	}
	if w.Remember == 0 {
		w.Remember = remember
	}
}

// ReadSecrets reads a file of webhook secrets. The error does not tell them.
func ReadSecrets(file string) ([]webhook.Secret, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	defer f.Close()
	s, err := webhook.ReadSecrets(f)
	if err != nil {
		return nil, fmt.Errorf("read secrets %s: %w", file, err)
	}
	return s, nil
}

func (l *Ledger) checkWebhooks(r *report) {
	sources, names := map[string]int{}, map[string]int{}
	for i, w := range l.Webhooks {
		at := index("webhook", i)
		if !token(w.Source) {
			r.addf(at+".source", "write 1 to 32 of a-z, 0-9 and -", "%s is no name for a source", show(w.Source))
		}
		r.unique(at+".source", w.Source, "webhook", sources, i)
		r.secretsFile(at+".secrets", w.Secrets)
		if w.RepeatStatus != 200 && w.RepeatStatus != 409 {
			r.addf(at+".repeat_status", "write 200 or 409", "%d is no answer to a repeat", w.RepeatStatus)
		}
		r.absent(at+".remember", w.Timestamp == Kept && w.Remember != 0, "a sender that keeps its timestamp is remembered for the signature's window", "remove it, or set timestamp to \"renewed\"")
		if w.Timestamp == Renewed && w.Remember < minRemember {
			r.addf(at+".remember", "write at least "+minRemember.String(), "%s is shorter than a signature is good", w.Remember)
		}
	}
	for i, n := range l.Notify {
		at := index("notify", i)
		if !token(n.Name) {
			r.addf(at+".name", "write 1 to 32 of a-z, 0-9 and -", "%s is no name for a receiver", show(n.Name))
		}
		r.unique(at+".name", n.Name, "notify", names, i)
		r.receiver(at+".url", n.URL)
		r.secretsFile(at+".secrets", n.Secrets)
		r.names(at+".types", n.Types, NotifyTypes())
	}
}

func (r *report) receiver(key, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || !slices.Contains([]string{"http", "https"}, u.Scheme):
		r.add(key, "no URL to send to", "write it as in https://desk.example.org/hooks")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		r.add(key, "leaves this host without TLS", "write https://…")
	}
}

func (r *report) secretsFile(key, file string) {
	if file == "" {
		r.add(key, "missing", "make one with `gatectl key webhook FILE`")
		return
	}
	if _, err := ReadSecrets(file); err != nil {
		r.add(key, err.Error(), "make one with `gatectl key webhook FILE`")
		return
	}
	r.secret(key, file)
}

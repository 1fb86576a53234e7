package ledgerhttp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// silent is when a gate that says something every 2 s counts as not heard.
const silent = 10 * time.Second

// metrics answers GET /metrics from its own registry: nothing that a library
// registers on the side is shown.
func (s *Server) metrics() (http.HandlerFunc, error) {
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{newCollector(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return func(w http.ResponseWriter, r *http.Request) {
		if _, p := s.bearer(r, ScopeRead); p != nil {
			p.write(w)
			return
		}
		h.ServeHTTP(w, r)
	}, nil
}

// collector reads the ledger at each scrape.
type collector struct {
	s *Server

	admitted, conflicts, alarms, late            *prometheus.Desc // by event
	up, heard, outstanding, lost, aside, trusted *prometheus.Desc // by gate
	asks, hands, refused, setAside, unpublished  *prometheus.Desc
	hooks, deliveries                            *prometheus.Desc
}

func newCollector(s *Server) *collector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("admitone_"+name, help, labels, nil)
	}
	return &collector{
		s:         s,
		admitted:  d("admissions", "Claims that stand admitted, or presumed so.", "event"),
		conflicts: d("conflicts", "Tickets admitted twice: conflicts that are not withdrawn.", "event"),
		alarms:    d("alarms", "Alarms that were raised; those that belong to no event under the event \"\".", "event"),
		late:      d("late_records", "Records that came after their event was pruned.", "event"),

		up:          d("gate_up", "1 where the gate was heard within the last 10 s.", "place", "device"),
		heard:       d("gate_heard_timestamp_seconds", "When the gate was heard last, by the ledger's clock.", "place", "device"),
		outstanding: d("gate_outstanding_records", "Records that the gate has and the ledger has not.", "place", "device"),
		lost:        d("gate_lost_records", "Records that will never come.", "place", "device"),
		aside:       d("gate_set_aside_records", "Records that could not be read.", "place", "device"),
		trusted:     d("gate_clock_trusted", "1 where the gate says that its clock is trusted.", "place", "device"),

		asks:        d("asks_total", "Asks that were answered."),
		hands:       d("hand_held_admissions_total", "Tickets admitted by hand-held scanners."),
		refused:     d("refused_messages_total", "Messages that were another's or made no sense."),
		setAside:    d("set_aside_records_total", "Records that could not be read."),
		unpublished: d("unpublished_feeds_total", "Feed records that gates had to fetch."),

		hooks:      d("webhooks_total", "Webhooks that came, by what became of them.", "source", "outcome"),
		deliveries: d("deliveries_total", "Tries to tell other systems; given_up counts messages.", "endpoint", "outcome"),
	}
}

// Describe sends every description, as a prometheus.Collector does.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.admitted, c.conflicts, c.alarms, c.late,
		c.up, c.heard, c.outstanding, c.lost, c.aside, c.trusted,
		c.asks, c.hands, c.refused, c.setAside, c.unpublished, c.hooks, c.deliveries,
	} {
		ch <- d
	}
}

// Collect reads the ledger once. A ledger that cannot be read is a failed scrape,
// not a row of zeros.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	st, err := c.s.opt.Ledger.Stats(context.Background()) // the interface has no context to pass on
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.asks, err)
		return
	}
	total := func(d *prometheus.Desc, n uint64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	total(c.asks, st.Asks)
	total(c.hands, st.HandHeld)
	total(c.refused, st.Refused)
	total(c.setAside, st.SetAside)
	total(c.unpublished, st.Unpublished)
	gauge(ch, c.alarms, float64(st.Alarms), "")
	for _, e := range st.Events {
		gauge(ch, c.admitted, float64(e.Admitted), e.Event)
		gauge(ch, c.conflicts, float64(e.Conflicts), e.Event)
		gauge(ch, c.alarms, float64(e.Alarms), e.Event)
		gauge(ch, c.late, float64(e.Late), e.Event)
	}
	c.webhooks(ch)
	now := c.s.opt.Now()
	for _, g := range st.Gates {
		c.gate(ch, g, now)
	}
}

// webhooks counts since the start of this process.
func (c *collector) webhooks(ch chan<- prometheus.Metric) {
	for k, n := range c.s.hooks.all() {
		ch <- prometheus.MustNewConstMetric(c.hooks, prometheus.CounterValue, float64(n), k.source, k.outcome)
	}
	if c.s.opt.Outbox == nil {
		return
	}
	for endpoint, n := range c.s.opt.Outbox.Counts() {
		for outcome, v := range map[string]uint64{"delivered": n.Delivered, "failed": n.Failed, "given_up": n.GivenUp} {
			ch <- prometheus.MustNewConstMetric(c.deliveries, prometheus.CounterValue, float64(v), endpoint, outcome)
		}
	}
}

func (c *collector) gate(ch chan<- prometheus.Metric, g ledger.Gate, now time.Time) {
	labels := []string{g.Place, string(g.Device)}
	gauge(ch, c.outstanding, float64(g.Outstanding), labels...)
	gauge(ch, c.lost, float64(g.Lost), labels...)
	gauge(ch, c.aside, float64(g.SetAside), labels...)
	heard, err := time.Parse(time.RFC3339Nano, g.Heard)
	if err != nil { // never since the start: there is no time to show
		gauge(ch, c.up, 0, labels...)
		return
	}
	gauge(ch, c.up, oneIf(now.Sub(heard) < silent), labels...)
	gauge(ch, c.heard, float64(heard.UnixMilli())/1000, labels...)
	gauge(ch, c.trusted, oneIf(g.Clock == ticket.Trusted), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

package lab

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"admitone/internal/ticket"
)

// The page in a real browser: it takes the key from its address, shows the gates,
// the last verdicts and a conflict, and nothing that the network sent as markup.
func TestPageInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; scripts/deps chromium installs it", err)
	}
	s := stand(t, Options{Gates: 2})
	p, junk := s.one(), `<img src=x onerror=alert(1)>`
	s.must(s.Cut("1", Down))
	s.must(s.Cut("2", Down))
	s.look(1, p.text)
	s.look(2, p.text)
	s.eventually("both to admit it", func() bool { return len(s.results(1)) == 1 && len(s.results(2)) == 1 })
	s.must(s.Heal("1"))
	s.must(s.Heal("2"))
	s.eventually("the conflict", func() bool {
		page, err := s.c.Conflicts(t.Context(), "", 10)
		return err == nil && len(page.Conflicts) == 1
	})
	s.look(1, junk)
	s.look(1, s.one().text)
	s.eventually("the verdicts to reach the ledger", func() bool {
		v, err := s.c.Verdicts(t.Context())
		return err == nil && len(v) >= 2 && v[0].Verdict == ticket.Admit
	})
	key, err := os.ReadFile(s.at.readKey())
	s.must(err)
	out, err := exec.CommandContext(t.Context(), browser,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=8000",
		"--dump-dom", s.url+"/#key="+strings.TrimSpace(string(key))).Output()
	s.must(err)
	dom := string(out)
	for _, want := range []string{p.id, "admit", "refuse", "invalid", "first", "open"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(dom, "<img") {
		t.Error("the page shows what a code said as markup")
	}
	if t.Failed() {
		t.Log(dom)
	}
}

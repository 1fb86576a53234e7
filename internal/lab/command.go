package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"admitone/internal/ticket"
)

// Usage is what `gatectl lab` prints for help.
const Usage = `usage: scripts/lab VERB DIR [ARGUMENT]...

  up DIR [GATES]            start a ledger, a broker and gates (default 2) in DIR; prints the ledger's URL
  mint DIR N                print N new ticket texts
  passage DIR K HOW         people at gate K's turnstile: auto, never, twice, now or exit
  mode DIR K MODE           normal, closed, free or test
  acquirer DIR HOW          what charges by card come to: approve, decline, fail, slow, late or lose
  clock DIR K OFFSET        make gate K's clock wrong, as -90m or 26h; 0s: right
  cut DIR K [down|hang]     break a link: refused (default), or accepted and silent
  heal DIR K                mend it
  kill DIR K                SIGKILL; it stays dead until start
  start DIR K               start it again
  down DIR                  stop it all

K is a gate's number; in the last four also "ledger" or "broker".
A gate reads ticket texts from DIR/gate-K/line, one a line, and writes
verdicts.jsonl, results.jsonl, turnstile.jsonl and log beside it.
`

// errUsage asks Main to print the usage.
var errUsage = errors.New("wrong arguments")

// Terminal is where a lab command speaks.
type Terminal struct {
	Out, Err io.Writer

	// Verdict prints a gate's verdict on Out; for the demonstration.
	Verdict func(ticket.Verdict) error
}

// Main runs one lab command and gives the exit code: 0, 1 where it failed, 2 for
// wrong arguments.
func Main(ctx context.Context, args []string, t Terminal) int {
	err := command(ctx, args, t)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprint(t.Err, Usage)
		return 2
	}
	fmt.Fprintln(t.Err, "lab:", err)
	return 1
}

func command(ctx context.Context, args []string, t Terminal) error {
	if len(args) < 2 || strings.HasPrefix(args[1], "-") {
		return errUsage // no directory: one with such a name is ./-x
	}
	verb, dir, rest := args[0], args[1], args[2:]
	switch verb {
	case "up":
		return up(dir, rest, t.Out)
	case "serve":
		return serve(ctx, dir, rest)
	case "demo":
		return runDemo(ctx, dir, t)
	case "mint":
		return mint(dir, rest, t.Out)
	case "passage", "mode", "clock":
		if len(rest) != 2 {
			return errUsage
		}
	case "cut":
		if len(rest) == 1 {
			rest = append(rest, string(Down))
		}
		if len(rest) != 2 {
			return errUsage
		}
	case "heal", "kill", "start", "acquirer":
		if len(rest) != 1 {
			return errUsage
		}
	case "down":
		if len(rest) != 0 {
			return errUsage
		}
	default:
		return errUsage
	}
	return ask(ctx, dir, verb, rest)
}

func mint(dir string, rest []string, stdout io.Writer) error {
	if len(rest) != 1 {
		return errUsage
	}
	n, err := strconv.Atoi(rest[0])
	if err != nil || n < 1 || n > 1_000_000 {
		return fmt.Errorf("mint %q tickets: want a number from 1 to 1000000", rest[0])
	}
	texts, err := Mint(dir, n, nil)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(stdout)
	for _, t := range texts {
		fmt.Fprintln(w, t)
	}
	return w.Flush()
}

// up starts the lab's own process in the background and returns when it says
// that all is ready.
func up(dir string, rest []string, stdout io.Writer) error {
	gates := "2"
	switch len(rest) {
	case 0:
	case 1:
		gates = rest[0]
	default:
		return errUsage
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start lab: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start lab: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(exe, "lab", "serve", dir, gates)
	cmd.ExtraFiles = []*os.File{w} // file 3 there
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start lab: %w", err)
	}
	said, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("start lab: %w", err)
	}
	url, ok := strings.CutPrefix(string(said), "ready ")
	if !ok {
		cmd.Wait()
		return errors.New(strings.TrimSpace(string(said)))
	}
	fmt.Fprint(stdout, url)
	return cmd.Process.Release()
}

// serve is the lab's own process.
func serve(ctx context.Context, dir string, rest []string) error {
	parent := os.NewFile(3, "ready")
	if parent == nil || len(rest) != 1 {
		return errUsage
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(parent, format, args...)
		parent.Close()
	}
	gates, err := strconv.Atoi(rest[0])
	if err != nil {
		err = fmt.Errorf("open lab: %q gates, want a number from 1 to %d", rest[0], MaxGates)
		say("%v\n", err)
		return err
	}
	syscall.CloseOnExec(3)
	exe, err := os.Executable()
	if err != nil {
		say("%v\n", err)
		return err
	}
	l, err := Up(ctx, Options{Dir: dir, Gates: gates, Bin: filepath.Dir(exe)})
	if err != nil {
		say("%v\n", err)
		return err
	}
	ln, err := net.Listen("unix", l.at.labSocket())
	if err != nil {
		l.Down()
		say("%v\n", err)
		return err
	}
	// The socket's file goes last: it says that the lab is there.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	defer os.Remove(l.at.labSocket())
	defer l.Down()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	srv := &http.Server{Handler: l.handler(stop)}
	go func() {
		<-ctx.Done()
		srv.Shutdown(context.WithoutCancel(ctx))
	}()
	say("ready %s\n", l.url)
	srv.Serve(ln)
	return nil
}

// request is a command as it goes to the lab's process.
type request struct {
	Verb string   `json:"verb"`
	Args []string `json:"args"`
}

func (l *Lab) handler(stop func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q request
		err := json.NewDecoder(r.Body).Decode(&q)
		if err == nil {
			err = l.do(r.Context(), q)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		if q.Verb == "down" {
			stop()
		}
	})
}

func (l *Lab) do(ctx context.Context, q request) error {
	arg := func(i int) string {
		if i < len(q.Args) {
			return q.Args[i]
		}
		return ""
	}
	switch q.Verb {
	case "passage":
		return l.Passage(ctx, arg(0), arg(1))
	case "mode":
		return l.Mode(ctx, arg(0), arg(1))
	case "clock":
		return l.Clock(arg(0), arg(1))
	case "cut":
		return l.Cut(arg(0), Cut(arg(1)))
	case "heal":
		return l.Heal(arg(0))
	case "acquirer":
		return l.Acquirer(arg(0))
	case "kill":
		return l.Kill(arg(0))
	case "start":
		return l.Start(ctx, arg(0))
	case "down":
		return nil
	}
	return fmt.Errorf("unknown verb %q", q.Verb)
}

// ask hands a command to the lab's process, and waits for its end where it is to
// end.
func ask(ctx context.Context, dir, verb string, args []string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	socket := layout{dir: abs}.labSocket()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	body, err := json.Marshal(request{Verb: verb, Args: args})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab/", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no lab runs in %s: start one with `scripts/lab up %s`", dir, dir)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(said)))
	}
	if verb != "down" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*stopWithin+5*time.Second)
	defer cancel()
	return await(ctx, "the lab's end", func(context.Context) error {
		if _, err := os.Stat(socket); err == nil {
			return errors.New("it still runs")
		}
		return nil
	})
}

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

type stageKey struct{}

// stage is the processes of one transcript.
type stage struct {
	bin, work string
	sockets   string // a short folder: a socket's path has 107 bytes at most
	http      string // the ledger's addresses, the same after a restart
	nats      string
	procs     map[string]*process
}

type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	log    string // the file of what it says
}

func newStage(e *testscript.Env, bin string) (*stage, error) {
	s := &stage{bin: bin, work: e.WorkDir, procs: map[string]*process{}}
	var err error
	if s.sockets, err = os.MkdirTemp("", "gc"); err != nil {
		return nil, err
	}
	for _, a := range []*string{&s.http, &s.nats} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*a = ln.Addr().String()
		ln.Close()
	}
	e.Setenv("SOCKETS", s.sockets)
	e.Setenv("GORACE", "atexit_sleep_ms=0") // or each of a hundred commands takes a second longer
	e.Setenv("USER", "ada")
	frames, err := filepath.Abs("../../testdata/frames")
	e.Setenv("FRAMES", frames)
	e.Setenv("BAD", "a\x1b[31mb")
	e.Setenv("TZ", "UTC")
	return s, err
}

// said is what a process has said so far.
func (p *process) said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// start runs a process and waits until it says that it is ready. What it says is
// in NAME.log.
func (s *stage) start(ts *testscript.TestScript, name, ready string, stdout io.Writer, exe string, args ...string) {
	p := &process{cmd: exec.Command(exe, args...), exited: make(chan struct{}), log: filepath.Join(s.work, name+".log")}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	p.cmd.Dir = s.work
	pipe, err := p.cmd.StderrPipe()
	ts.Check(err)
	p.cmd.Stdout = stdout
	ts.Check(p.cmd.Start())
	s.procs[name] = p
	began := make(chan bool, 1)
	go func() {
		defer close(p.exited)
		defer close(began)
		defer log.Close()
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if ready != "" && strings.Contains(lines.Text(), ready) {
				select {
				case began <- true:
				default:
				}
			}
		}
		p.cmd.Wait()
	}()
	if ready != "" && !<-began {
		ts.Fatalf("%s ended before it was ready:\n%s", name, p.said())
	}
}

// stop ends a process and checks that it ends well.
func (s *stage) stop(name string) error {
	p := s.procs[name]
	if p == nil {
		return fmt.Errorf("no %s runs", name)
	}
	delete(s.procs, name)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %d:\n%s", name, code, p.said())
	}
	return nil
}

// close ends what a transcript that failed left running.
func (s *stage) close() {
	for _, p := range s.procs {
		p.cmd.Process.Kill()
		<-p.exited
	}
	os.RemoveAll(s.sockets)
}

// haltCmd: halt NAME... ends processes in this order, and each must end well.
func haltCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, -1)
	for _, name := range args {
		ts.Check(stageOf(ts).stop(name))
	}
}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

const ledgerTOML = `data_dir = "ledger"
[http]
listen = %q
[nats]
listen = %q
leaf = "127.0.0.1:0"
[[caller]]
name = "transcript"
key_sha256 = %q
scopes = ["read", "orders"]
[[signer]]
name = "ada"
public = %q
scopes = ["admin"]
`

// ledgerCmd: ledger SIGNER [TICKETKEY] makes a bearer key and a configuration, tells
// gatectl through its environment, and starts the ledger; ledger alone starts it
// again.
func ledgerCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 2 {
		ts.Fatalf("usage: ledger [SIGNER [TICKETKEY]]")
	}
	s := stageOf(ts)
	config := filepath.Join(s.work, "ledgerd.toml")
	if len(args) > 0 {
		pub, err := readPublic(ts.MkAbs(args[0]))
		ts.Check(err)
		const bearer = "a-key-for-reads"
		ts.Check(os.WriteFile(filepath.Join(s.work, "bearer"), []byte(bearer+"\n"), 0o600))
		hash := sha256.Sum256([]byte(bearer))
		text := fmt.Sprintf(ledgerTOML, s.http, s.nats, hex.EncodeToString(hash[:]), hex.EncodeToString(pub))
		if len(args) == 2 {
			text = fmt.Sprintf("ticket_key = %q\n%s", args[1], text)
		}
		ts.Check(os.WriteFile(config, []byte(text), 0o600))
		ts.Setenv("ADMITONE_LEDGER", "http://"+s.http)
		ts.Setenv("ADMITONE_KEY", filepath.Join(s.work, "bearer"))
		ts.Setenv("ADMITONE_SIGN", ts.MkAbs(args[0]))
	}
	s.start(ts, "ledger", `msg="ledger serves"`, io.Discard, filepath.Join(s.bin, "ledgerd"), "-config", config)
}

const gateTOML = `enrolment = %[1]q
data_dir = "%[2]s/data"
run_dir = "%[2]s/run"
control = %[3]q
results = "%[2]s.results"
rearm = "300ms"
[[lane]]
[lane.turnstile]
driver = "sim"
file = "%[2]s.turnstile"
inputs = ["passage_in", "ready"]
[[lane.reader]]
path = "%[2]s.line"
`

// gateCmd: gate NAME ENROLMENT starts a gate with a simulated turnstile. Its
// socket is $SOCKETS/NAME.
func gateCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2)
	s, name := stageOf(ts), args[0]
	ts.Check(os.MkdirAll(filepath.Join(s.work, name), 0o700))
	ts.Check(syscall.Mkfifo(filepath.Join(s.work, name+".line"), 0o600))
	config := filepath.Join(s.work, name+".toml")
	ts.Check(os.WriteFile(config, fmt.Appendf(nil, gateTOML, args[1], name, filepath.Join(s.sockets, name)), 0o600))
	s.start(ts, name, `msg="gate starts"`, io.Discard, filepath.Join(s.bin, "gated"), "-config", config)
}

// showCmd: show GATE TEXT holds a ticket before a gate's reader once.
func showCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2)
	ts.Check(stageOf(ts).show(args[0], args[1]))
}

func (s *stage) show(gate, text string) error {
	f, err := os.OpenFile(filepath.Join(s.work, gate+".line"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errorsFirst(err, f.Close())
}

func errorsFirst(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// watchingCmd: watching GATE FILE starts gatectl watch into a file, and shows the
// gate junk until a verdict on it arrives: then it is there for the next one.
func watchingCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, -1)
	s, out := stageOf(ts), ts.MkAbs(args[1])
	exe, err := exec.LookPath("gatectl")
	ts.Check(err)
	f, err := os.Create(out)
	ts.Check(err)
	ts.Defer(func() { f.Close() })
	s.start(ts, "watch", "", f, exe, append([]string{"watch", "-socket", filepath.Join(s.sockets, args[0])}, args[2:]...)...)
	n := 0
	if !until(func() bool {
		n++
		ts.Check(s.show(args[0], fmt.Sprintf("junk %d", n)))
		st, err := os.Stat(out)
		ts.Check(err)
		return st.Size() > 0
	}) {
		ts.Fatalf("gatectl watch saw nothing")
	}
}

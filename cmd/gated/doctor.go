package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"admitone/internal/config"
)

// level says how bad a finding is.
type level string

const (
	levelOK   level = "ok"
	levelWarn level = "warn" // the gate works, and will be better off with it mended
	levelBad  level = "bad"  // the gate does not work, or would not after a power cut
)

// finding is one thing that the doctor looked at.
type finding struct {
	Level level  `json:"level"`
	About string `json:"about"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what mends it; "" where nothing must be done
}

// examination is the box that is looked at and what was found.
type examination struct {
	host
	c        config.Gate
	findings []finding
}

func (x *examination) add(l level, about, found, do string) {
	x.findings = append(x.findings, finding{Level: l, About: about, Found: plain1(found), Do: plain1(do)})
}

func (x *examination) ok(about, found string, args ...any) {
	x.add(levelOK, about, fmt.Sprintf(found, args...), "")
}

func (x *examination) warn(about, do, found string, args ...any) {
	x.add(levelWarn, about, fmt.Sprintf(found, args...), do)
}

func (x *examination) bad(about, do, found string, args ...any) {
	x.add(levelBad, about, fmt.Sprintf(found, args...), do)
}

// plain1 makes one line of printable text: some of it is read from devices.
func plain1(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == 0xfffd {
			return ' '
		}
		return c
	}, strings.TrimRight(s, "\x00\n "))
}

// doctor is `gated doctor`: it looks at everything around the gate and changes
// nothing. The exit code is 1 where something is bad.
func doctor(ctx context.Context, args []string, env environment) int {
	flags := flag.NewFlagSet("gated doctor", flag.ContinueOnError)
	flags.SetOutput(env.stderr)
	file := flags.String("config", "/etc/gated/gated.toml", "the configuration `file`")
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(env.stderr, "gated doctor: unknown argument %q\n", flags.Arg(0))
		return 2
	}
	return examine(ctx, thisHost(), *file).report(env.stdout, *asJSON)
}

// examine looks at a host with the configuration of a file.
func examine(ctx context.Context, h host, file string) *examination {
	x := &examination{host: h}
	x.configuration(file)
	x.enrolment()
	x.board()
	x.lanes(ctx)
	x.clock()
	x.disk()
	x.runDir()
	x.watchdog()
	x.power()
	x.brokers(ctx)
	return x
}

// configuration reads the file; what it says of the rest is looked at as far as it
// could be read.
func (x *examination) configuration(file string) {
	c, err := config.LoadGate(file)
	x.c = c
	var problems config.Problems
	switch {
	case err == nil:
		x.ok("configuration", "%s", file)
	case errors.As(err, &problems):
		for _, p := range problems {
			where := strings.TrimSuffix(p.File+": "+p.Key, ": ")
			x.bad("configuration", p.Right, "%s: %s", where, p.Wrong)
		}
	default:
		x.bad("configuration", "", "%v", err)
	}
}

// report prints the findings and gives the exit code.
func (x *examination) report(w io.Writer, asJSON bool) int {
	count := map[level]int{}
	width := 0
	for _, f := range x.findings {
		count[f.Level]++
		width = max(width, len([]rune(f.About)))
	}
	code := 0
	if count[levelBad] > 0 {
		code = 1
	}
	if asJSON {
		b, err := json.Marshal(map[string]any{
			"findings": x.findings, "ok": count[levelOK], "warn": count[levelWarn], "bad": count[levelBad],
		})
		if err != nil {
			panic(err) // strings and numbers always encode
		}
		fmt.Fprintf(w, "%s\n", b)
		return code
	}
	for _, f := range x.findings {
		fmt.Fprintf(w, "%-4s  %-*s  %s\n", f.Level, width, f.About, f.Found)
		if f.Do != "" {
			fmt.Fprintf(w, "%-4s  %-*s  -> %s\n", "", width, "", f.Do)
		}
	}
	fmt.Fprintf(w, "\n%d bad, %d to look at, %d ok\n", count[levelBad], count[levelWarn], count[levelOK])
	return code
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"admitone/internal/control"
	"admitone/internal/gate"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

func gateCommands() []command {
	return []command{{
		name: "status", about: "Say how the gate on this machine stands", uses: socket, flags: noFlags(status),
	}, {
		name: "watch", about: "Print each verdict of the gate as it falls, until interrupted", uses: socket, flags: noFlags(watch),
		help: "With -json the lines are those of the gate's own verdict file.",
	}, {
		name: "mode", args: "[MODE]", about: "Say or set the gate's mode: normal, closed, free or test", max: 1, uses: socket, flags: noFlags(mode),
		help: "closed refuses all, free leaves the turnstile open and marks what passes as used, test\nlets test tickets work lamp and relay, for 30 minutes at most. closed and free survive\na restart.",
	}, {
		name: "annul", args: "CLAIM", about: "Take an admission back at the gate that made it: the ticket works again", min: 1, max: 1, uses: socket, flags: noFlags(annul),
		help: "CLAIM is as verdicts name it, GATE/RUN/POSITION. A gate annuls its own admissions,\nwithin 15 minutes; a supervisor frees any other with `gatectl release`.",
	}}
}

// gateStatus is what a gate answers, see cmd/gated.
type gateStatus struct {
	gate.Status
	Wire   wire.GateStats `json:"wire"`
	Broker string         `json:"broker"`
	Notice string         `json:"notice"`
}

func status(ctx context.Context, c *call) error {
	raw, err := control.NewClient(c.socket).Status(ctx)
	if err != nil {
		return c.noGate(err)
	}
	var s gateStatus
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read the gate's status: %w", err)
	}
	fields := []field{
		{"place", cell{s.Place, strong}}, {"mode", modeCell(s.Mode)}, {"state", stateCell(s)},
		{"events", text(or(strings.Join(s.Events, ", "), "none is open here"))}, {"programme", text(version(s.Programme))},
		{"link", linkCell(s.Link)}, {"broker", text(or(s.Broker, "not connected"))}, {"clock", clockCell(s.Clock)}, {"time", text(s.Time)},
	}
	if s.Notice != "" {
		fields = append(fields, field{"notice", cell{s.Notice, amber}})
	}
	for _, l := range s.Lanes {
		fields = append(fields, field{"lane " + l.Name, laneCell(l)})
	}
	for _, d := range s.Devices {
		fields = append(fields, field{"hardware", deviceCell(d)})
	}
	n := s.Counts
	fields = append(fields,
		field{"since start", text(fmt.Sprintf("%d admitted, %d refused, %d waited, %d annulled, %d tailgates", n.Admitted, n.Refused, n.Waited, n.Annulled, n.Tailgates))},
		field{"device", text(string(s.Device))}, field{"run", text(s.Run.String())},
	)
	return c.out.fields(json.RawMessage(raw), fields...)
}

func version(n uint64) string {
	if n == 0 {
		return "none yet"
	}
	return fmt.Sprintf("version %d", n)
}

func modeCell(m ticket.GateMode) cell {
	if m == ticket.ModeNormal {
		return text(string(m))
	}
	return cell{"! " + string(m), amber}
}

func stateCell(s gateStatus) cell {
	if note := s.Note(); note != "" {
		return cell{"✗ " + note, bad}
	}
	return cell{"✓ ready", good}
}

func linkCell(link string) cell {
	switch link {
	case "up":
		return cell{"✓ up", good}
	case "":
		return text("")
	}
	return cell{"✗ " + link, amber}
}

func clockCell(c ticket.Class) cell {
	if c == ticket.Trusted {
		return cell{"✓ " + c.String(), good}
	}
	return cell{"✗ " + c.String(), amber}
}

func laneCell(l gate.LaneStatus) cell {
	switch {
	case !l.Ready:
		return cell{"✗ not ready", bad}
	case l.Suspect:
		return cell{"✗ passage sensor is suspect", bad}
	case len(l.Open) > 0:
		return cell{"… open for " + strings.Join(l.Open, ", "), amber}
	}
	return cell{"✓ ready", good}
}

func deviceCell(d gate.DeviceStatus) cell {
	if d.State != gate.DeviceOK {
		return cell{"✗ " + d.Name + ": " + d.State, bad}
	}
	return cell{"✓ " + d.Name, good}
}

// noGate says which socket was tried when there is no gate behind it.
func (c *call) noGate(err error) error {
	if c.socket == defaultSocket {
		return hint(err, "a gate with another run_dir or control needs -socket PATH")
	}
	return err
}

// modeReport is the mode after the command.
type modeReport struct {
	Mode ticket.GateMode `json:"mode"`
}

func mode(ctx context.Context, c *call) error {
	client := control.NewClient(c.socket)
	if len(c.args) == 1 {
		m := ticket.GateMode(c.args[0])
		if !m.Valid() {
			return suggest(wrongUsage("unknown mode %q: want normal, closed, free or test", m), string(m), []string{"normal", "closed", "free", "test"}, "")
		}
		if err := client.SetMode(ctx, m, c.who()); err != nil {
			return c.noGate(err)
		}
	}
	raw, err := client.Status(ctx)
	if err != nil {
		return c.noGate(err)
	}
	var r modeReport
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("read the gate's status: %w", err)
	}
	return c.out.say(r, modeCell(r.Mode))
}

// who names the person at the keyboard, for the records.
func (c *call) who() string {
	for _, v := range []string{"SUDO_USER", "USER", "LOGNAME"} {
		if name := c.env.getenv(v); name != "" {
			return name
		}
	}
	return "gatectl"
}

func annul(ctx context.Context, c *call) error {
	id, err := claimID(c.args[0])
	if err != nil {
		return err
	}
	if err := control.NewClient(c.socket).Annul(ctx, id, c.who()); err != nil {
		return c.noGate(err)
	}
	return c.out.say(claimReport{Claim: id.String(), Done: "annulled"}, cell{"✓ annulled", good}, text(id.String()))
}

// watch prints verdicts until it is interrupted. A gate that stops ends it.
func watch(ctx context.Context, c *call) error {
	err := control.NewClient(c.socket).Watch(ctx, func(line []byte) error {
		var v ticket.Verdict
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("read verdict: %w", err)
		}
		if err := c.out.say(json.RawMessage(line), verdictLine(v)...); err != nil {
			return err
		}
		return c.out.w.Flush()
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		return errors.New("the gate has stopped")
	}
	return c.noGate(err)
}

// clockTime is for eyes on a gate: the time of day where they are.
const clockTime = "15:04:05.000"

// verdictLine is a verdict for people.
func verdictLine(v ticket.Verdict) []cell {
	ruling := cell{"✗ refuse", bad}
	switch v.Verdict {
	case ticket.Admit:
		ruling = cell{"✓ admit ", good}
	case ticket.Wait:
		ruling = cell{"… wait  ", amber}
	}
	line := []cell{
		text(v.Time.Local().Format(clockTime)), ruling, text(fmt.Sprintf("%-15s", v.Reason)), text(v.Gate + " lane " + v.Lane),
		{or(v.Ticket, "no ticket"), faint},
	}
	if !v.FirstSeen.IsZero() {
		line = append(line, cell{"first at " + v.FirstSeen.Local().Format(clockTime) + " by " + v.FirstGate, amber})
	}
	if !v.Online && v.Verdict == ticket.Admit {
		line = append(line, cell{"offline", amber})
	}
	if v.GateMode != ticket.ModeNormal {
		line = append(line, modeCell(v.GateMode))
	}
	if v.Clock == ticket.Untrusted {
		line = append(line, cell{"clock untrusted", amber})
	}
	return append(line, cell{fmt.Sprintf("%.0f ms", float64(v.Took.Microseconds())/1000), faint})
}

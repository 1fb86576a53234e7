package hil

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestFindDevice(t *testing.T) {
	tree := "info qom-tree\r\n/machine (virt-machine)\r\n  /fw_cfg (fw_cfg_mem)\r\n    /ctl[0] (memory-region)\r\n" +
		"  /unattached (container)\r\n    /device[5] (pl011)\r\n    /device[6] (pl061)\r\n      /pl061[0] (memory-region)\r\n(qemu) "
	got, err := findDevice(tree, "pl061")
	if want := "/machine/unattached/device[6]"; err != nil || got != want {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
	if _, err := findDevice(tree, "bcm2835_gpio"); err == nil {
		t.Error("it finds a device that is not there")
	}
}

// Edges come between a command and its answer, and belong to no command.
func TestEdgesBetweenAnswers(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() {
		for s := bufio.NewScanner(theirs); s.Scan(); {
			switch word, _, _ := strings.Cut(s.Text(), " "); word {
			case "irq_intercept_out":
				fmt.Fprint(theirs, "IRQ raise 5\nOK\nIRQ lower 5\nIRQ raise 3\n")
			case "readl":
				fmt.Fprint(theirs, "IRQ raise 5\nOK 0x0000000000000028\n")
			default:
				fmt.Fprint(theirs, "FAIL Unknown command\n")
			}
		}
	}()
	e := newEdges()
	b, err := newPL061(newQtest(ours, e), "/machine")
	if err != nil {
		t.Fatal(err)
	}
	p, mark := &Pins{b, e}, 1
	edge, err := p.AwaitEdge(t.Context(), mark, 5, false)
	if err != nil || edge.High {
		t.Fatal(edge, err)
	}
	for line, want := range map[int]bool{3: true, 4: false, 5: true} {
		if high, err := p.Level(line); high != want || err != nil {
			t.Errorf("line %d is high: %v %v, want %v", line, high, err, want)
		}
	}
	if got, err := p.Since(t.Context(), mark, 5); len(got) != 1+3+1 || err != nil {
		t.Errorf("after the mark line 5 has %v %v, want 5 edges", got, err)
	}
	if err := p.Drive(1, true); err == nil {
		t.Error("a command that fails gives no error")
	}
}

// A pin shows its latch as an output, and its pull as an input; which comes first
// when it is taken makes the edge, or none.
func TestEdgesOfRegisters(t *testing.T) {
	const fsel2, fsel0, out22, out6 = bcmSelect + 8, bcmSelect, 1 << 6, 1 << 18
	for name, c := range map[string]struct {
		line  int
		latch uint64
		do    [][2]uint64
		want  []bool
	}{
		"level first":                {22, 1 << 22, [][2]uint64{{bcmClear, 1 << 22}, {fsel2, out22}}, nil},
		"direction first":            {22, 1 << 22, [][2]uint64{{fsel2, out22}, {bcmClear, 1 << 22}}, []bool{true, false}},
		"level first, pulled up":     {6, 0, [][2]uint64{{bcmSet, 1 << 6}, {fsel0, out6}}, nil},
		"direction first, pulled up": {6, 0, [][2]uint64{{fsel0, out6}, {bcmSet, 1 << 6}}, []bool{false, true}},
		"a pulse":                    {22, 0, [][2]uint64{{fsel2, out22}, {bcmSet, 1 << 22}, {bcmSet, 1 << 22}, {bcmClear, 1 << 22}}, []bool{true, false}},
		"back to input":              {22, 0, [][2]uint64{{fsel2, out22}, {bcmSet, 1 << 22}, {fsel2, 0}}, []bool{true, false}},
	} {
		b := &bcm{edges: newEdges(), levels: c.latch}
		var trace strings.Builder
		for _, w := range c.do {
			fmt.Fprintf(&trace, "memory_region_ops_write cpu 2 mr 0x7fd8ce779850 addr %#x value %#x size 4 name 'bcm2835_gpio'\n", w[0], w[1])
			fmt.Fprint(&trace, "memory_region_ops_write cpu 0 mr 0x7fd8ce779850 addr 0x3f215040 value 0x68 size 4 name 'bcm2835-aux'\n")
		}
		b.follow(strings.NewReader(trace.String()))
		var got []bool
		for _, e := range b.edges.list {
			got = append(got, e.High)
			if e.Line != c.line {
				t.Errorf("%s: %v", name, e)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the edges go high: %v, want %v", name, got, c.want)
		}
	}
}

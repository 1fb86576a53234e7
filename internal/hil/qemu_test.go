package hil

import (
	"bufio"
	"fmt"
	"net"
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
	p, err := newPins(newQtest(ours), gpioBlock{levels: 0x100}, "/machine")
	if err != nil {
		t.Fatal(err)
	}
	mark := 1
	e, err := p.AwaitEdge(t.Context(), mark, 5, false)
	if err != nil || e.High {
		t.Fatal(e, err)
	}
	for line, want := range map[int]bool{3: true, 4: false, 5: true} {
		if high, err := p.Level(line); high != want || err != nil {
			t.Errorf("line %d is high: %v %v, want %v", line, high, err, want)
		}
	}
	if got := p.Since(mark, 5); len(got) != 1+3 {
		t.Errorf("after the mark line 5 has %v, want 4 edges", got)
	}
	if err := p.Drive(1, true); err == nil {
		t.Error("a command that fails gives no error")
	}
}

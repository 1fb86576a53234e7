package hil

import "context"

// pl061 is the GPIO block of the machine virt. QEMU reports its outputs' edges
// itself, and its inputs can be set.
type pl061 struct {
	q    *qtest
	path string // of the device in the machine
}

// The level register: the lines that the address's bits 2 to 9 select.
const pl061Levels = 0x9030000 + 0x3fc

func newPL061(q *qtest, path string) (pl061, error) {
	_, err := q.do("irq_intercept_out %s", path)
	return pl061{q, path}, err
}

func (p pl061) level(line int) (bool, error) {
	v, err := p.q.word(pl061Levels)
	return v>>line&1 == 1, err
}

func (p pl061) drive(line int, high bool) error {
	_, err := p.q.do("set_irq_in %s unnamed-gpio-in %d %d", p.path, line, map[bool]int{true: 1}[high])
	return err
}

// sync asks for anything: the edges come in order with the answers.
func (p pl061) sync(context.Context) error {
	_, err := p.q.word(pl061Levels)
	return err
}

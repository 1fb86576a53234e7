package turnstile

import (
	"errors"
	"fmt"
)

// Chips looks at the kernel's GPIO chips and requests no line. It gives those that
// it may open, and an error for those that it may not.
func Chips() ([]Chip, error) { return lookAt(kernelChips{}) }

func lookAt(kernel chips) (out []Chip, err error) {
	for _, name := range kernel.names() {
		label, c, openErr := kernel.open(name)
		if openErr != nil {
			err = errors.Join(err, fmt.Errorf("look at GPIO chip %s: %w", name, openErr))
			continue
		}
		seen := Chip{Name: name, Label: label, Lines: c.Lines(), Held: map[int]string{}}
		for i := range seen.Lines {
			if info, infoErr := c.LineInfo(i); infoErr == nil && info.Used {
				seen.Held[i] = info.Consumer
			}
		}
		out = append(out, seen)
		err = errors.Join(err, c.Close())
	}
	return out, err
}

package turnstile

// Chip is a GPIO chip as anybody may see it.
type Chip struct {
	Name  string         // as in "gpiochip0"; it is below /dev
	Label string         // as a wiring names it: it stays when the number changes
	Lines int            // they are numbered from 0
	Held  map[int]string // the lines that are in use, and who says that he holds them
}

package wire

// CloseForGood closes the library's connection under a NATS, as the library does
// when it gives up.
func CloseForGood(c *NATS) {
	c.mu.Lock()
	nc := c.cur
	c.mu.Unlock()
	nc.Close()
}

// BackOff is the delay before an attempt to connect.
var BackOff = backOff

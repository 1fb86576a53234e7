package broker

import (
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
)

// logger passes the server's lines on. A connection that is refused again and
// again must not fill the log, so there is a limit to them.
type logger struct {
	log   *slog.Logger
	limit *rate.Limiter
	fatal chan string // why the server could not start; it would end the process otherwise
}

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log, limit: rate.NewLimiter(rate.Every(2*time.Second), 20), fatal: make(chan string, 1)}
}

// Noticef and the others implement the server's Logger.
func (l *logger) Noticef(format string, v ...any) {
	l.log.Debug("broker's server", "text", fmt.Sprintf(format, v...))
}

// Warnf passes a warning on.
func (l *logger) Warnf(format string, v ...any) {
	if l.limit.Allow() {
		l.log.Warn("broker's server warns", "text", fmt.Sprintf(format, v...))
	}
}

// Errorf passes an error on: of a connection, mostly, never of ours.
func (l *logger) Errorf(format string, v ...any) {
	if l.limit.Allow() {
		l.log.Warn("broker's server reports an error", "text", fmt.Sprintf(format, v...))
	}
}

// Fatalf keeps the reason for Run to return.
func (l *logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

// Debugf and Tracef are never switched on.
func (l *logger) Debugf(string, ...any) {}

// Tracef is never switched on.
func (l *logger) Tracef(string, ...any) {}

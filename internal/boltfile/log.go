package boltfile

import (
	"context"
	"fmt"
	"log/slog"
)

// logger passes on what bbolt says. bbolt speaks twice at each operation at level
// debug, which is dropped unformatted; its errors come back as errors, too, so they
// are no more than a warning here.
type logger struct{ log *slog.Logger }

func (l logger) say(level slog.Level, text string) {
	l.log.Log(context.Background(), level, "bbolt reports", "text", text)
}

func (l logger) Debug(...any)                   {}
func (l logger) Debugf(string, ...any)          {}
func (l logger) Info(v ...any)                  { l.say(slog.LevelDebug, fmt.Sprint(v...)) }
func (l logger) Infof(format string, v ...any)  { l.say(slog.LevelDebug, fmt.Sprintf(format, v...)) }
func (l logger) Warning(v ...any)               { l.say(slog.LevelWarn, fmt.Sprint(v...)) }
func (l logger) Warningf(f string, v ...any)    { l.say(slog.LevelWarn, fmt.Sprintf(f, v...)) }
func (l logger) Error(v ...any)                 { l.say(slog.LevelWarn, fmt.Sprint(v...)) }
func (l logger) Errorf(format string, v ...any) { l.say(slog.LevelWarn, fmt.Sprintf(format, v...)) }
func (l logger) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (l logger) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (l logger) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (l logger) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }

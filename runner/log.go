package runner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"example.com/runner/internal/usercode"
)

// logger returns a logger for Options.Log. A worker goes on when the handler of
// the program's logger panics.
func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(guardedLog{log.Handler(), &sync.Once{}})
}

// guardedLog calls a slog.Handler of the program. It stops panics only:
// runtime.Goexit would need a goroutine for each line. Nothing calls WithAttrs
// or WithGroup, so these need no guard.
type guardedLog struct {
	slog.Handler
	reported *sync.Once
}

// stopPanic is for defer.
func (g guardedLog) stopPanic() {
	if v := recover(); v != nil {
		p := usercode.Recovered(v)
		g.reported.Do(func() { // the log itself is broken, so there is no better place
			fmt.Fprintf(os.Stderr, "runner: the handler of Options.Log panics: %v\n", p)
		})
	}
}

// Enabled implements slog.Handler.
func (g guardedLog) Enabled(ctx context.Context, level slog.Level) bool {
	defer g.stopPanic()
	return g.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (g guardedLog) Handle(ctx context.Context, r slog.Record) error {
	defer g.stopPanic()
	return g.Handler.Handle(ctx, r)
}

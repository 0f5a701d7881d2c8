package runner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"example.com/runner/internal/guard"
)

// logger returns a logger for Options.Log. A worker goes on when the handler of
// the program's logger panics.
func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(guardedLog{log.Handler(), &sync.Once{}})
}

// guardedLog calls a slog.Handler of the program.
type guardedLog struct {
	inner    slog.Handler
	reported *sync.Once
}

func (g guardedLog) guard(f func()) {
	if p := guard.Call(f); p != nil {
		g.reported.Do(func() { // the log itself is broken, so there is no better place
			fmt.Fprintf(os.Stderr, "runner: the handler of Options.Log does not return: %v\n", p)
		})
	}
}

// Enabled implements slog.Handler.
func (g guardedLog) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	g.guard(func() { enabled = g.inner.Enabled(ctx, level) })
	return enabled
}

// Handle implements slog.Handler.
func (g guardedLog) Handle(ctx context.Context, r slog.Record) (err error) {
	g.guard(func() { err = g.inner.Handle(ctx, r) })
	return err
}

// WithAttrs implements slog.Handler.
func (g guardedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	g.guard(func() { g.inner = g.inner.WithAttrs(attrs) })
	return g
}

// WithGroup implements slog.Handler.
func (g guardedLog) WithGroup(name string) slog.Handler {
	g.guard(func() { g.inner = g.inner.WithGroup(name) })
	return g
}

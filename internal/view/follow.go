package view

import (
	"context"
	"errors"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

// redrawEvery is how often --follow refreshes the screen.
const redrawEvery = 2 * time.Second

// lineEvery is how often --follow prints a line if stdout is not a terminal.
const lineEvery = time.Minute

// Follow prints the status repeatedly until the context ends. The status shows
// the given queues, or all if queues is nil. After ^C Follow returns no error,
// because that is the normal way to end it.
func Follow(ctx context.Context, r *runner.Runner, p *term.Printer, queues []string) error {
	ctx, stop := signals.Until(ctx)
	defer stop()
	for {
		began := time.Now()
		err := printAgain(ctx, r, p, queues)
		if err == nil {
			err = p.Flush()
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		// Reading many tasks is slow. So wait four times as long as the last refresh took.
		interval := max(redrawEvery, 4*time.Since(began))
		if !p.Stdout.TTY {
			interval = lineEvery
		}
		select {
		case <-ctx.Done():
			if s, ok := errors.AsType[signals.Received](context.Cause(ctx)); ok && !s.Interrupt() {
				return failure.ExitStatus(s.Status())
			}
			return nil
		case <-time.After(interval):
		}
	}
}

// printAgain draws the status over the previous one. If stdout is not a terminal, it prints a line instead.
func printAgain(ctx context.Context, r *runner.Runner, p *term.Printer, queues []string) error {
	s, err := ReadStatus(ctx, r, p.Now(), queues)
	if err != nil {
		return err
	}
	if !p.Stdout.TTY {
		p.Print(s.Summary() + "\n")
		return nil
	}
	if s.Trend, err = admin.Trend(ctx, r, time.Minute, TrendMinutes); err != nil {
		return err
	}
	p.Stdout.Resize()
	s.Redraw(p)
	return nil
}

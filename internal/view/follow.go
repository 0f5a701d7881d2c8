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

// Follow prints the status repeatedly until the context ends. The status shows the given queues, or all if queues is nil. If batch is not
// 0, it also shows the progress of that batch. After ^C Follow returns no error, because that is the normal way to end it.
func Follow(ctx context.Context, r *runner.Runner, p *term.Printer, queues []string, batch int64) error {
	ctx, stop := signals.Until(ctx)
	defer stop()
	progress := Progress{Batch: batch}
	for {
		began := time.Now()
		err := printAgain(ctx, r, p, queues, &progress)
		if err == nil {
			err = p.Flush()
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		// Reading a large batch is slow. So wait four times as long as the last refresh took.
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
func printAgain(ctx context.Context, r *runner.Runner, p *term.Printer, queues []string, progress *Progress) error {
	s, err := ReadStatus(ctx, r, p.Now(), queues)
	if err == nil {
		s.Head, s.Progress, err = progress.Read(ctx, r, &s)
	}
	switch {
	case err != nil:
		return err
	case progress.Batch != 0 && s.Progress.Total == 0:
		return failure.NotFound("runner list", "no tasks in batch %d", progress.Batch)
	case !p.Stdout.TTY && progress.Batch != 0:
		p.Print(p.Now().Format(time.RFC3339) + " " + s.Head + ": " + s.Progress.Text() + "\n")
		return nil
	case !p.Stdout.TTY:
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

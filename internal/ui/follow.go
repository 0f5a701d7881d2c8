package ui

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/runner/runner"
)

// redrawEvery is how often --follow refreshes the screen.
const redrawEvery = 2 * time.Second

// Follow draws the status again and again until ctx ends: that of the given
// queues, or of all for nil. ^C is the normal way to end it, so it's no error.
func Follow(ctx context.Context, r *runner.Runner, p *Printer, queues []string) error {
	ctx, stop := Until(ctx)
	defer stop()

	for {
		began := time.Now()
		err := redraw(ctx, r, p, queues)
		if err == nil {
			err = p.Flush()
		}
		if err != nil && ctx.Err() == nil {
			return err
		}

		// Reading many tasks is slow. So wait four times as long as the last
		// refresh took.
		select {
		case <-ctx.Done():
			if s, ok := errors.AsType[Received](context.Cause(ctx)); ok && !s.Interrupt() {
				return ExitStatus(s.Status())
			}
			return nil
		case <-time.After(max(redrawEvery, 4*time.Since(began))):
		}
	}
}

// redraw draws the status over the previous one, line by line, so nothing
// flickers. It leaves out the lines for which the terminal is too small, and
// keeps the bottom row empty, because text there could make the terminal
// scroll.
func redraw(ctx context.Context, r *runner.Runner, p *Printer, queues []string) error {
	s, err := ReadStatus(ctx, r, p.Now(), queues)
	if err != nil {
		return err
	}

	p.Stdout.Resize()
	lines := strings.Split(strings.TrimSuffix(p.Capture(s.Draw), "\n"), "\n")
	if rows := p.Stdout.Height - 1; rows > 0 {
		lines = lines[:min(len(lines), rows)]
	}

	p.Print("\x1b[H" + strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J")
	return nil
}

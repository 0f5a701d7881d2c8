package main

import (
	"context"
	"errors"
	"strconv"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
)

func logsCommand(a *cli.App) *cli.Command {
	o := &logsOptions{lines: -1}
	return &cli.Command{
		Category: "Inspect", Usage: "print the output of tasks (-f: follow)",
		UsageText: "runner logs [ID...|SELECTOR] [-f] [-n N] [--since WHEN] [--attempt N|all]",
		Flags: append(o.selection.Options(a, "since"),
			cli.Bool(&o.follow, "follow f", "continue until the tasks have finished"),
			cli.Int(&o.lines, "tail n", "N", "print only the last N lines of each task", 0),
			a.When(&o.Since, "since", "output that was printed at WHEN or later"),
			cli.Value(&o.Range, "attempt", "N|all", "output of attempt N, or of all attempts", parseAttempt).Default("latest"),
			cli.Bool(&o.timestamps, "timestamps", "print the time before each line")),
		Description: `EXAMPLES
  runner logs -f 1042
  runner logs -q media -f --timestamps
  runner logs -n 20 1042

logs prints the output of tasks byte for byte: their stdout to stdout, their
stderr to stderr. A terminal gets colours and carriage returns, and other
control characters as text: \x1b. For several tasks each line begins with [ID].
With a selector, logs prints the output of all matching tasks, the oldest task
first. With -f and a selector, logs follows the matching tasks that run now or
start later, until you press ^C.

With -f and an id, logs waits until the task starts, continues through its
retries, and exits when the task ends. If the middle of a long output was not
stored, a line on stderr says so. --json prints each stored piece of output as a
record.`,
		Action: a.Action(o.read, cli.Reads(o.run)),
	}
}

type logsOptions struct {
	output.Selection
	selection  cli.Selection
	lines      int
	follow     bool
	timestamps bool
}

func (o *logsOptions) read(c *cli.Context, a *cli.App) error {
	if err := o.selection.Read(c, a); err != nil {
		return err
	}
	o.Filter, o.Range.Lines = o.selection.Filter, o.lines
	if name := cli.FirstSet(c, "state", "until", "older-than"); name != "" && o.follow && len(o.Filter.IDs) == 0 {
		return ui.Usage("-f cannot be used with --%s; it follows running tasks", name)
	}
	return o.selection.Require("logs")
}

// parseAttempt parses the value of --attempt: a number or "all".
func parseAttempt(text string) (output.Range, error) {
	if text == "all" {
		return output.Range{All: true}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return output.Range{}, errors.New("invalid attempt; use a number from 1, or all")
	}
	return output.Range{N: n}, nil
}

func (o *logsOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	to := &output.LogPrinter{P: p, Timestamps: o.timestamps, Follow: o.follow, Since: o.Since}
	var err error
	switch {
	case !o.follow:
		err = o.Show(ctx, r, to)
	case len(o.Filter.IDs) > 0:
		ctx, stop := ui.Until(ctx)
		defer stop()
		to.Obstacles = output.NoteObstacles(ctx, r, p, o.Filter.IDs, "", false)
		err = o.FollowIDs(ctx, r, to)
	default:
		ctx, stop := ui.Until(ctx)
		defer stop()
		err = o.FollowFilter(ctx, r, to)
	}

	if s, ok := errors.AsType[ui.Received](err); ok {
		err = ui.ExitStatus(s.Status())
	}
	if finishErr := to.Finish(); err == nil {
		err = finishErr
	}

	return err
}

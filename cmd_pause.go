package main

import (
	"context"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func pauseCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "pause", Category: "Steer", Usage: "stop starting tasks from a queue",
		UsageText: "runner pause QUEUE...|--all [--reason TEXT]",
		Description: `When it returns, no worker starts another task of these queues. Running tasks
go on; what they retry waits. A pause survives restarts and is shown by status,
list, show and enqueue. --all pauses the database: queues that come later, too.

Prints a line per queue: its name and "paused".

EXAMPLES
  runner pause media --reason "disk is full"
  trap 'runner resume web' EXIT; runner pause web; ./migrate.sh

EXIT STATUS
  0   nothing of these queues starts any more
  1   no database, or it cannot be written
  2   usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Flags: []cli.Flag{cli.BoolOption("all", "every queue, now and later"),
			cli.TextOption("reason", "TEXT", "shown wherever the pause is", "")},
		Action: cli.Action(a, false, readPauseOptions, runPause),
	}
}

type pauseOptions struct {
	queues []string // names of queues; only runner.AllQueues with --all
	reason string
}

func readPauseOptions(c *cli.Context, _ *cli.App) (o pauseOptions, err error) {
	if o.queues, err = cli.ReadQueues(c); err != nil {
		return o, err
	}
	if o.reason = cli.Get[string](c, "reason"); len(o.reason) > jobs.MaxError {
		return o, failure.Usage("--reason is too long; at most %s", humanize.Size(jobs.MaxError))
	}
	return o, nil
}

func runPause(ctx context.Context, r *runner.Runner, p *term.Printer, o pauseOptions) error {
	if err := r.Pause(ctx, o.reason, o.queues...); err != nil {
		return err
	}
	return view.PrintQueues(ctx, r, p, o.queues)
}

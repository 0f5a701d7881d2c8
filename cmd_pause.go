package main

import (
	"context"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/runner"
)

func pauseCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Control", Usage: "stop starting tasks of queues",
		UsageText: "runner pause QUEUE...|--all [--for DUR] [--reason TEXT]",
		Description: `EXAMPLES
  runner pause media --reason "disk is full"
  trap 'runner resume web' EXIT; runner pause web; ./migrate.sh
  runner pause --all --for 2h

After pause returns, no worker starts another task of the paused queues. Running
tasks continue; if such a task needs another attempt, that attempt waits. A
pause survives restarts. The commands status, list, show and enqueue show the
pause. pause --all pauses all queues of the database, including queues that do
not exist yet.

A pause lasts until resume. With --for it ends by itself, unless resume comes
first. To pause again replaces the end: without --for, it takes the end away.

pause prints a line for each queue: its name and "paused". With --for, the time
at which the pause ends follows.

EXIT STATUS
  0   no task of these queues starts any more
  1   no database, or it cannot be written
  2   invalid usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Flags: []cli.Flag{cli.BoolOption("all", "all queues, including queues that do not exist yet"),
			cli.DurationOption("for", "end the pause after this time", 0).Default("until resume"),
			cli.TextOption("reason", "TEXT", "reason that is shown with the pause", "")},
		Action: cli.Action(a, false, readPauseOptions, runPause),
	}
}

type pauseOptions struct {
	queues []string // names of queues; with --all the only element is runner.AllQueues
	reason string
	length time.Duration // 0: until resume
}

func readPauseOptions(c *cli.Context, _ *cli.App) (o pauseOptions, err error) {
	if o.queues, err = cli.ReadQueues(c); err != nil {
		return o, err
	}
	if o.reason = cli.Get[string](c, "reason"); len(o.reason) > taskspec.MaxError {
		return o, failure.Usage("--reason is too long; at most %s", humanize.Size(taskspec.MaxError))
	}
	if o.length = cli.Get[time.Duration](c, "for"); c.IsSet("for") && o.length <= 0 {
		return o, failure.Usage("--for must be positive")
	}
	return o, nil
}

func runPause(ctx context.Context, r *runner.Runner, p *term.Printer, o pauseOptions) error {
	var err error
	if o.length > 0 {
		err = r.PauseFor(ctx, o.length, o.reason, o.queues...)
	} else {
		err = r.Pause(ctx, o.reason, o.queues...)
	}
	if err != nil {
		return err
	}
	return view.PrintQueues(ctx, r, p, o.queues)
}

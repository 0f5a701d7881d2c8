package main

import (
	"context"
	"slices"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/runner"
)

func resumeCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Control", Usage: "start tasks of paused queues again",
		UsageText: "runner resume QUEUE...|--all|--deletion",
		Description: `EXAMPLES
  runner resume media
  runner resume --all
  runner resume --deletion

resume ends the pause of queues. Workers start tasks of the resumed queues
within a second. resume --all ends the pause of the whole database and of each
single queue.

Workers stop deleting old tasks for an hour in two cases: the clock has jumped
forwards by more than a day, or a worker starts after more than a day without
any worker. If the clock is right, run resume --deletion: workers then delete
old tasks again within ten minutes.

resume prints a line for each queue: its name and "running". With --deletion,
resume prints nothing.

EXIT STATUS
  0   the queues are not paused
  1   the whole database is paused (use resume --all), or the database cannot
      be written
  2   invalid usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Flags: []cli.Flag{cli.BoolOption("all", "end all pauses of queues"),
			cli.BoolOption("deletion", "confirm that the clock is right, and delete old tasks again")},
		Action: func(c *cli.Context) error {
			deletion := cli.Get[bool](c, "deletion")
			if deletion && (c.Args().Present() || cli.Get[bool](c, "all")) {
				return failure.Usage("--deletion cannot be used with queues or --all")
			}
			queues := []string{runner.DeletionPause}
			if !deletion {
				var err error
				if queues, err = cli.ReadQueues(c); err != nil {
					return err
				}
			}
			r, err := a.Open(c, false, runner.Options{})
			if err != nil {
				return err
			}
			defer r.Close()
			if err := r.Resume(c.Context, queues...); err != nil || deletion {
				return err
			}
			return printResumed(c.Context, r, a.Printer, queues)
		},
	}
}

// printResumed prints the queues. It returns an error if the whole database is paused, because the queues then stay paused.
func printResumed(ctx context.Context, r *runner.Runner, p *term.Printer, queues []string) error {
	if err := view.PrintQueues(ctx, r, p, queues); err != nil {
		return err
	}
	pauses, err := r.Pauses(ctx)
	if err == nil && admin.AllPaused(pauses) && !slices.Contains(queues, runner.AllQueues) {
		err = (&failure.Error{Code: "conflict", Exit: 1, What: "the whole database is paused"}).Hint("runner resume --all")
	}
	return err
}

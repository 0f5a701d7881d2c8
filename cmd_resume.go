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
		Name: "resume", Category: "Steer", Usage: "start again",
		UsageText: "runner resume QUEUE...|--all|--deletion",
		Description: `Ends the pause of queues; workers start their tasks within a second. --all ends
every pause, that of the database and those of single queues.

Workers delete no old tasks for an hour after the clock has jumped forwards by
more than a day, or when no worker ran for more than a day. --deletion confirms
that the clock is right: they delete old tasks again within ten minutes.

Prints a line per queue: its name and "running"; nothing for --deletion.

EXIT STATUS
  0   the queues are not paused, now or before
  1   the whole database is paused: resume --all; or it cannot be written
  2   usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Flags: []cli.Flag{cli.BoolOption("all", "end every pause of queues"),
			cli.BoolOption("deletion", "the clock is right: delete old tasks again")},
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

// printResumed prints the queues. It returns an error if the pause of the whole database still holds them.
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

package main

import (
	"context"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
)

func statusCommand(a *cli.App) *cli.Command {
	var o statusOptions
	return &cli.Command{
		Category: "Inspect", Usage: "show queues, workers and problems",
		UsageText: "runner status [-q NAME]... [-f] [--format TEMPLATE]",
		Flags: []cli.Flag{
			cli.Values(&o.queues, "queue q", "NAME", "print this queue only; repeatable", cli.One(cli.ParseQueue)),
			cli.Bool(&o.follow, "follow f", "draw the status again every 2s, until ^C"),
			a.FormatOption(),
		},
		Description: `EXAMPLES
  runner status
  runner status -q mail -q media
  runner status -f

The first line of status says whether workers run. The following lines show the
queues, the workers and the problems, and for each problem a command that you
can type.

With -f, status prints only as many lines as the terminal has. ^C ends it with
status 0. runner wait shows the progress of the tasks of a batch or a queue.

COLUMNS
  PENDING SCHED BLOCK RETRY RUN   number of tasks in each state
  FAILED 24H, DONE 24H            tasks that failed or completed in the last
                                  24 hours
  OLDEST                          age of the oldest pending task
  paused                          no task of the queue starts (runner resume)
  limit                           the queue is at its limit (runner limit list)
  SLOTS                           busy slots/all slots

A narrow terminal omits some columns. In a pipe, tabs separate the fields of a
line. The first field is queue, worker, schedule or problem; the other fields
have the order of --json.`,
		Action: a.Action(o.read, o.run),
	}
}

type statusOptions struct {
	queues []string // queues to show; nil means all
	follow bool
}

func (o *statusOptions) read(c *cli.Context, a *cli.App) error {
	if c.Args().Present() {
		hint := "runner status -q ARG"
		if _, err := cli.ParseID(c.Args().First()); err == nil {
			hint = "runner show ARG"
		}
		return cli.NoArgs(hint)(c)
	}
	if o.follow && (a.Printer.JSON || c.IsSet("format")) {
		return ui.Usage("--follow cannot be used with --json or --format").Hint("runner status --json")
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if o.follow {
		if !p.Stdout.TTY {
			return ui.Usage("--follow needs a terminal").Hint("runner status")
		}
		return ui.Follow(ctx, r, p, o.queues)
	}

	s, err := ui.ReadStatus(ctx, r, p.Now(), o.queues)
	if err != nil {
		return err
	}
	return p.Show(s.Record, s.Lines, s.Draw)
}

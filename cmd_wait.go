package main

import (
	"cmp"
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/output"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func waitCommand(a *cli.App) *cli.Command {
	var o waitOptions
	return &cli.Command{
		Category: "Control", Usage: "wait until tasks finish",
		UsageText: "runner wait [ID...|SELECTOR] [--timeout DUR] [--any] [--output|--result]",
		Flags: append(o.selection.Options(a),
			cli.Duration(&o.timeout, "timeout", "stop waiting after this time, exit 124").Default("never"),
			cli.Bool(&o.any, "any", "wait until one of the tasks finishes; exit with the status of that task"),
			cli.Bool(&o.output, "output o", "print the output of the tasks; with several tasks, [ID] comes before each line"),
			cli.Bool(&o.result, "result", "print the JSON result of each task, or null, on a line of its own")),
		Description: `EXAMPLES
  runner wait 1042                     # exit with the status of the task
  runner wait --output 1042            # also print its output
  runner wait 1042 1043                # exit 0 if both completed, else 1
  runner wait -q media && runner enqueue -- publish.sh
  runner wait --batch 41               # the id that enqueue --each has printed

If you wait for several tasks, wait shows the progress on a terminal after a
second: how many tasks have ended, how many of them failed, their rate, and an
estimate of the time left. With a selector, wait waits for the matching tasks
that are unfinished when it starts. If no unfinished task matches, wait exits 0.
With --batch and without --state, tasks of the batch that failed or were
cancelled before wait started also affect the exit status. ^C and --timeout end
only the wait; the tasks continue. --json prints the record of each task when
the task ends, and no progress.

EXIT STATUS
  0         the task completed; with several tasks: all completed
  1         a task with --job failed, or its result is not JSON; with several
            tasks: some did not complete
  2         invalid usage
  3, 75     with several tasks: some do not exist, or the database is busy
  124       wait or the task timed out; stderr says which
  125       the task was cancelled, expired, deleted or lost, or does not exist;
            also if some output is missing, or runner itself failed
  126, 127  the command cannot be executed, or was not found
  128+n     signal n killed the command, or ended the waiting
  others    exit status of the command`,
		Action: func(c *cli.Context) error {
			err := a.Action(o.read, cli.Reads(o.run))(c)
			if len(o.selection.Filter.IDs) == 1 || o.any {
				return ui.WhileWaiting(err) // a script can tell it from a failure of the task
			}
			return err
		},
	}
}

type waitOptions struct {
	selection cli.Selection
	timeout   time.Duration // how long to wait; 0 means no limit
	any       bool
	result    bool
	output    bool
}

func (o *waitOptions) read(c *cli.Context, a *cli.App) error {
	if err := o.selection.Read(c, a); err != nil {
		return err
	}
	switch {
	case o.output && (o.result || o.any || a.Printer.JSON):
		return ui.Usage("--output cannot be used with --result, --any or --json")
	case o.result && a.Printer.JSON:
		return ui.Exclusive("--result", "--json").Because("the record has the result")
	}

	return o.selection.Require("wait")
}

func (o *waitOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	w, err := output.Select(ctx, r, o.selection.Filter)
	switch {
	case err != nil:
		return err
	case len(w.IDs) == 0 && o.selection.Filter.Batch != 0:
		return output.NoneInBatch(ctx, r, o.selection.Filter.Batch)
	case len(w.IDs) == 0 && len(w.Missing) == 0:
		return ui.WarnUnknown(ctx, r, p, o.selection.Filter)
	}

	gone := w.Gone(p)
	if len(w.IDs) == 0 {
		return gone
	}

	// Handle signals before the first message is printed: a program that reads
	// it may send a signal at once.
	ctx, release := ui.Until(ctx)
	defer release()

	switch left, err := db.Of(r).IDs(ctx, jobs.Filter{IDs: w.IDs, States: taskspec.Unfinished()}); {
	case err != nil:
		return err
	case len(left) == 1:
		p.Note("waiting for task %d", left[0])
	case len(left) > 1:
		p.Note("waiting for %s tasks", humanize.Count(int64(len(left))))
	}

	w.Obstacles = output.NoteObstacles(ctx, r, p, w.IDs, "--timeout", false)
	ctx, stop := output.Limit(ctx, o.timeout)
	defer stop()

	to := &output.LogPrinter{P: p, Named: len(w.IDs) > 1, Follow: true, Obstacles: w.Obstacles}
	if o.output {
		if err := output.Follow(ctx, r, w.IDs, output.Range{Lines: -1}, to); err != nil {
			return output.Stopped(p, err, w.IDs, len(w.IDs))
		}
	}

	show := func(t jobs.Task) error { return ui.PrintEnd(p, t, o.result, ui.NewTask(t, p.Now())) }
	var end error
	if o.any || len(w.IDs)+len(w.Missing) == 1 && o.selection.Filter.Batch == 0 {
		end, err = w.One(ctx, r, p, show)
	} else {
		end, err = w.All(ctx, r, p, show)
		end = cmp.Or(gone, end)
	}
	if err != nil {
		return err
	}

	return to.Complete(end)
}

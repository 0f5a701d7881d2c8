package main

import (
	"context"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func retryCommand(a *cli.App) *cli.Command {
	o := &retryOptions{Bulk: cli.Bulk{Verb: "retry", Done: "retried"}}
	return &cli.Command{
		Category: "Control", Usage: "run finished tasks again",
		UsageText: "runner retry ID...|SELECTOR [--in DUR] [--dependents]",
		Description: `EXAMPLES
  runner retry 1037
  runner retry -s failed --since 1h
  runner retry -q mail --in 10m --yes

retry makes finished tasks pending again. Retried tasks keep their ids, their
history and their output. Retried tasks do not expire, and their attempts and
losses are counted from 0 again. If a retried task was enqueued with --after, it
waits only for those tasks of --after that have not finished. If one of them was
deleted, its result is missing, and retry says so on stderr. retry makes
scheduled and retrying tasks due now, and keeps the numbers of their attempts
and losses. Running tasks stay unchanged.

A selector without --state selects failed tasks. To run a completed task again,
give the id of the task. If a selector matches several tasks, retry asks for
confirmation on a terminal; without a terminal retry needs --yes. retry prints a
line for each task: its id and state.`,
		Flags: o.Options(a,
			cli.Duration(&o.in, "in", "start the tasks after this delay"),
			cli.Text(&o.Group, "group", "KEY", "the failed tasks of this group; runner list --group prints the keys"),
			cli.Bool(&o.dependents, "dependents", "also retry the tasks that were cancelled because of these tasks")),
		Action: a.Action(o.read, o.run),
	}
}

type retryOptions struct {
	cli.Bulk
	in         time.Duration
	dependents bool
}

func (o *retryOptions) read(c *cli.Context, a *cli.App) error {
	if c.IsSet("group") && o.Group == "" {
		return ui.Usage("--group is empty").Hint("runner list --group")
	}
	if err := o.Read(c, a); err != nil {
		return err
	}

	switch {
	case o.in > taskspec.MaxDelay:
		return ui.Usage("--in %s is too long; use at most 10 years", humanize.WriteDuration(o.in))
	case o.Group != "" && len(o.Selection.Filter.IDs) > 0:
		return ui.Exclusive("--group", "task ids")
	case o.Group != "" && c.IsSet("state"):
		return ui.Exclusive("--group", "--state")
	}

	return nil
}

func (o *retryOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	options := runner.RetryOptions{In: o.in, Dependents: o.dependents}
	return o.Apply(ctx, r, p, cli.Change{
		Apply: func(ctx context.Context, ids []int64) ([]jobs.ActionResult, error) {
			return r.Retry(ctx, ids, options)
		},
		Print: func(out *cli.Outcomes, result jobs.ActionResult, t jobs.Task) {
			if result.Without != 0 {
				out.Note("task %d runs without the result of task %d, which was deleted", t.ID, result.Without)
			}
			switch {
			case result.Taken:
				out.Refuse(t, result.State, "its unique key belongs to another task")
			case !result.Done:
				out.Refuse(t, result.State, "it is "+string(result.State))
			case result.State == jobs.Scheduled:
				out.Line(t, result.State, "in "+humanize.WriteDuration(o.in))
			default:
				out.Line(t, result.State, "")
			}
		},
	})
}

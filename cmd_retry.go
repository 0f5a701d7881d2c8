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
		Flags: cli.BulkOptions(a, cli.DurationOption("in", "start the tasks after this delay", 0),
			cli.TextOption("group", "KEY", "the failed tasks of this group; runner list --group prints the keys", ""),
			cli.BoolOption("dependents", "also retry the tasks that were cancelled because of these tasks")),
		Action: cli.Action(a, false, readRetryOptions, runRetry),
	}
}

type retryOptions struct {
	cli.Bulk
	in         time.Duration
	dependents bool
}

func readRetryOptions(c *cli.Context, a *cli.App) (retryOptions, error) {
	s, err := cli.ReadBulk(c, a.Now(), "retry", "retried")
	s.Group = cli.Get[string](c, "group")
	o := retryOptions{Bulk: s, in: cli.Get[time.Duration](c, "in"), dependents: cli.Get[bool](c, "dependents")}
	switch {
	case c.IsSet("group") && s.Group == "":
		return o, ui.Usage("--group is empty").Hint("runner list --group")
	case err != nil:
		return o, err
	case o.in > taskspec.MaxDelay:
		return o, ui.Usage("--in %s is too long; use at most 10 years", humanize.WriteDuration(o.in))
	case s.Group != "" && len(s.Selection.Filter.IDs) > 0:
		return o, ui.Exclusive("--group", "task ids")
	case s.Group != "" && c.IsSet("state"):
		return o, ui.Exclusive("--group", "--state")
	}
	return o, nil
}

func runRetry(ctx context.Context, r *runner.Runner, p *ui.Printer, o retryOptions) error {
	retry := r.Retry
	if o.dependents {
		retry = r.RetryWithDependents
	}
	return o.Run(ctx, r, p, cli.Change{
		Apply: func(ctx context.Context, ids []int64) ([]runner.ActionResult, error) { return retry(ctx, ids, o.in) },
		Print: func(out *cli.Outcomes, result runner.ActionResult, t jobs.Task) {
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

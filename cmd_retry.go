package main

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/bulk"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func retryCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "retry", Category: "Control", Usage: "run finished tasks again",
		UsageText: "runner retry ID...|SELECTOR [--in DUR] [--dependents]",
		Description: `EXAMPLES
  runner retry 1037
  runner retry -s failed --since 1h
  runner retry -q mail --in 10m --yes

retry makes finished tasks pending again under their ids, like new tasks:
without attempts, losses and expiry. Their history and output stay. Of the tasks
in --after, only unfinished ones block the task again. Scheduled and retrying
tasks become due now and keep their counts. Running tasks stay unchanged.

A selector without --state selects failed tasks. To run a completed task again,
give its id. If a selector selects several tasks, retry asks for confirmation
on a terminal and needs --yes elsewhere. retry prints a line for each task: its
id and state.

EXIT STATUS
  0   done; also if no task was selected
  1   a task is running, or another task holds its unique key; the other
      tasks are retried. Also if the answer was no: nothing was changed
  2   invalid usage; nothing was changed
  3   some ids do not exist; the other tasks are retried
  75  the database is busy, or the disk is full`,
		Flags: bulk.Options(a, cli.DurationOption("in", "start the tasks after this delay (0s)", 0),
			cli.TextOption("group", "KEY", "the failed tasks of this group of runner list --group", ""),
			cli.BoolOption("dependents", "also retry the tasks that were cancelled because of these tasks")),
		Action: cli.Action(a, false, readRetryOptions, runRetry),
	}
}

type retryOptions struct {
	bulk.Action
	in         time.Duration
	dependents bool
}

func readRetryOptions(c *cli.Context, a *cli.App) (retryOptions, error) {
	s, err := bulk.ReadGroup(c, a.Now(), "retry", "retried")
	o := retryOptions{Action: s, in: cli.Get[time.Duration](c, "in"), dependents: cli.Get[bool](c, "dependents")}
	if err == nil && o.in > taskspec.MaxDelay {
		return o, failure.Usage("--in %s is too long; use at most 10 years", timetext.WriteDuration(o.in))
	}
	o.OnlyEligible()
	if err == nil && o.Nothing {
		return o, failure.Usage("completed tasks can be retried by id only").Hint("runner retry 1042")
	}
	return o, err
}

func runRetry(ctx context.Context, r *runner.Runner, p *term.Printer, o retryOptions) error {
	ids, err := o.Tasks(ctx, r, p)
	if err != nil {
		return err
	}
	if o.DryRun {
		return o.Preview(ctx, r, p, ids, func(t jobs.Task) string {
			if t.State == jobs.Running {
				return bulk.WhyRunning
			}
			return ""
		})
	}
	out := bulk.NewOutcomes(p, &o.Action, ids)
	for part := range slices.Chunk(ids, bulk.BatchSize) {
		retry := r.Retry
		if o.dependents {
			retry = r.RetryWithDependents
		}
		moved, err := retry(ctx, part, o.in)
		if err != nil {
			return err
		}
		var tasks map[int64]jobs.Task // tasks for the records of --json
		if p.JSON {
			ids := make([]int64, len(moved))
			for i, m := range moved {
				ids[i] = m.ID
			}
			if tasks, err = bulk.TasksByID(ctx, r, ids); err != nil {
				return err
			}
		}
		for _, m := range moved {
			state, record := string(m.State), o.Record(p, tasks[m.ID])
			switch {
			case m.State == "":
				out.Missing = append(out.Missing, m.ID)
			case m.Taken:
				out.Refuse(m.ID, state, "its unique key belongs to another task", record)
			case !m.Done && m.State == jobs.Running:
				out.Refuse(m.ID, state, bulk.WhyRunning, record)
			case !m.Done:
				out.Refuse(m.ID, state, "it is "+state, record)
			case m.State == jobs.Scheduled:
				out.Line(m.ID, state, "in "+timetext.WriteDuration(o.in), record)
			default:
				out.Line(m.ID, state, "", record)
			}
		}
	}
	return out.End()
}

package main

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/bulk"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func cancelCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "cancel", Category: "Control", Usage: "stop waiting or running tasks",
		UsageText: "runner cancel ID...|SELECTOR [--now] [--no-wait] [--reason TEXT]",
		Description: `EXAMPLES
  runner cancel 1041 1039
  runner cancel -q media --reason "disk is full"
  runner cancel -s running --job email.send --yes

cancel ends a waiting task at once. A running command gets SIGTERM and, after
--kill-after, SIGKILL, with all its child processes. For a running function its
context ends. cancel returns after the tasks have stopped. Finished tasks stay
unchanged.

A selector selects unfinished tasks only. If it selects several tasks, cancel
asks for confirmation on a terminal and needs --yes elsewhere. cancel prints a
line for each task: its id and state.

EXIT STATUS
  0   the tasks have stopped or will not start; also if no task was selected
  1   no database, or the answer was no
  2   invalid usage; nothing was changed
  3   some ids do not exist; the other tasks are cancelled
  75  the database is busy, or the disk is full`,
		Flags: bulk.Options(a,
			cli.BoolOption("now", "send SIGKILL at once"),
			cli.BoolOption("no-wait", "do not wait until running tasks have stopped"),
			cli.TextOption("reason", "TEXT", "reason that is stored with the task", "")),
		Action: cli.Action(a, false, readCancelOptions, runCancel),
	}
}

type cancelOptions struct {
	bulk.Action
	how    runner.CancelOptions
	noWait bool
}

func readCancelOptions(c *cli.Context, a *cli.App) (cancelOptions, error) {
	s, err := bulk.Read(c, a.Now(), "cancel", "cancelled")
	s.OnlyEligible()
	return cancelOptions{Action: s, how: runner.CancelOptions{Now: cli.Get[bool](c, "now"), Reason: cli.Get[string](c, "reason")},
		noWait: cli.Get[bool](c, "no-wait")}, err
}

func runCancel(ctx context.Context, r *runner.Runner, p *term.Printer, o cancelOptions) error {
	ids, err := o.Tasks(ctx, r, p)
	if err != nil {
		return err
	}
	if o.DryRun {
		return o.Preview(ctx, r, p, ids, func(jobs.Task) string { return "" })
	}
	began := p.Now()
	out := bulk.NewOutcomes(p, &o.Action, ids)
	var stopping []jobs.Task
	for part := range slices.Chunk(ids, bulk.BatchSize) {
		moved, err := r.Cancel(ctx, part, o.how)
		if err != nil {
			return err
		}
		tasks, err := bulk.TasksByID(ctx, r, part)
		if err != nil {
			return err
		}
		for _, m := range moved {
			t, there := tasks[m.ID]
			switch asked := m.State == jobs.Running; {
			case !there:
				out.Missing = append(out.Missing, m.ID)
			case asked && !o.noWait:
				stopping = append(stopping, t)
			case isStopping(t):
				out.Line(t.ID, string(t.State), "stopping", o.Record(p, t))
			default:
				out.Line(t.ID, string(t.State), "", o.Record(p, t))
			}
		}
	}
	if len(stopping) > 0 {
		if err := o.await(ctx, r, p, out, stopping, began); err != nil {
			return err
		}
	}
	return out.End()
}

// isStopping reports whether a task with a cancel request still runs.
func isStopping(t jobs.Task) bool { return t.State == jobs.Running && !t.CancelRequestedAt.IsZero() }

// await prints which tasks are stopping. Then it waits for them and prints each task when it has stopped.
func (o *cancelOptions) await(ctx context.Context, r *runner.Runner, p *term.Printer, out *bulk.Outcomes, stopping []jobs.Task,
	began time.Time) error {
	workers, err := r.Workers(ctx)
	if err != nil {
		return err
	}
	left := make([]int64, len(stopping))
	for i, t := range stopping {
		left[i] = t.ID
		switch {
		case p.JSON:
		case i < bulk.ShownLines:
			p.Say("%d stopping: %s", t.ID, o.stopText(t, workers))
		case i == bulk.ShownLines:
			p.Say("%s more stopping", humanize.Count(int64(len(stopping)-i)))
		}
	}
	return r.Changes(ctx, func() (bool, error) {
		tasks, err := bulk.TasksByID(ctx, r, left)
		if err != nil {
			return false, err
		}
		left = slices.DeleteFunc(left, func(id int64) bool {
			t, there := tasks[id]
			switch {
			case !there:
				out.Missing = append(out.Missing, id) // another process deleted the task
			case isStopping(t):
				return false
			default:
				out.Line(id, string(t.State), "after "+humanize.Took(p.Now().Sub(began)), o.Record(p, t))
			}
			return true
		})
		return len(left) == 0, p.Flush()
	})
}

// stopText describes how a running task is stopped.
func (o *cancelOptions) stopText(t jobs.Task, workers []runner.Worker) string {
	alive := slices.ContainsFunc(workers, func(w runner.Worker) bool { return w.ID == t.WorkerID })
	switch {
	case len(workers) == 0:
		return "its worker was lost, and no other worker runs (runner work)"
	case !alive:
		return "its worker was lost; another worker takes over"
	case t.Job != jobs.CommandJob:
		return "the context of its function ends"
	case t.CancelNow || t.KillAfter == 0:
		return "SIGKILL sent"
	}
	return "SIGTERM sent, SIGKILL in " + timetext.WriteDuration(t.KillAfter)
}

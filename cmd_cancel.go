package main

import (
	"context"
	"maps"
	"slices"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func cancelCommand(a *cli.App) *cli.Command {
	o := &cancelOptions{Bulk: cli.Bulk{Verb: "cancel", Done: "cancelled"}}
	return &cli.Command{
		Category: "Control", Usage: "stop waiting or running tasks",
		UsageText: "runner cancel ID...|SELECTOR [--now] [--no-wait] [--reason TEXT]",
		Description: `EXAMPLES
  runner cancel 1041 1039
  runner cancel -q media --reason "disk is full"
  runner cancel -s running --job email.send --yes

cancel ends a waiting task at once. A running command gets SIGTERM. After
the --kill-after time of the task, the command and all its child processes get
SIGKILL. If the task runs a Go function, the context of the function is
cancelled. cancel returns after the tasks have stopped. If the worker of a task
is dead and no other worker runs, cancel does not wait: the next worker cancels
the task. Finished tasks stay unchanged.

With a selector, cancel changes unfinished tasks only. If it matches several
tasks, cancel asks for confirmation on a terminal; without a terminal cancel
needs --yes. cancel prints a line for each task: its id and state.`,
		Flags: o.Options(a,
			cli.Bool(&o.how.Kill, "now", "send SIGKILL at once"),
			cli.Bool(&o.noWait, "no-wait", "do not wait until running tasks have stopped"),
			cli.Text(&o.how.Reason, "reason", "TEXT", "reason that is stored with the task")),
		Action: a.Action(o.Read, o.run),
	}
}

type cancelOptions struct {
	cli.Bulk
	how    runner.CancelOptions
	noWait bool
}

func (o *cancelOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	var stopping []int64
	return o.Apply(ctx, r, p, cli.Change{
		Apply: func(ctx context.Context, ids []int64) ([]jobs.ActionResult, error) {
			return r.Cancel(ctx, ids, o.how)
		},
		Print: func(out *cli.Outcomes, result jobs.ActionResult, t jobs.Task) {
			switch {
			case result.State == jobs.Running && !o.noWait:
				stopping = append(stopping, t.ID)
			case isStopping(t):
				out.Line(t, t.State, "stopping")
			default:
				out.Line(t, t.State, "")
			}
		},
		After: func(out *cli.Outcomes) error {
			if len(stopping) == 0 {
				return nil
			}
			p.Tell("waiting for %s to stop", humanize.Plural(len(stopping), "task"))
			return awaitStop(ctx, r, out, stopping)
		},
	})
}

// isStopping reports whether a task is still running after a request to cancel
// it.
func isStopping(t jobs.Task) bool { return t.State == jobs.Running && !t.CancelRequestedAt.IsZero() }

// awaitStop waits until the tasks have stopped, or until no worker is left that
// could stop them. Then it prints them.
func awaitStop(ctx context.Context, r *runner.Runner, out *cli.Outcomes, ids []int64) error {
	var tasks map[int64]jobs.Task
	err := admin.Changes(ctx, r, func() (done bool, err error) {
		workers, err := admin.Workers(ctx, r)
		if err == nil {
			tasks, err = cli.TasksByID(ctx, r, ids)
		}
		lost := !slices.ContainsFunc(workers, func(w admin.Worker) bool { return w.State != admin.WorkerLost })
		return lost || !slices.ContainsFunc(slices.Collect(maps.Values(tasks)), isStopping), err
	})
	if err != nil {
		return err
	}

	for _, id := range ids {
		switch t, exists := tasks[id]; {
		case !exists: // another process has deleted it
			out.Missing = append(out.Missing, id)
		case isStopping(t):
			out.Refuse(t, t.State, "its worker is gone, and no other worker runs; the next one cancels it")
		default:
			out.Line(t, t.State, "")
		}
	}

	return nil
}

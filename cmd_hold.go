package main

import (
	"context"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/bulk"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func holdCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Control", Usage: "keep waiting tasks from starting",
		UsageText: "runner hold ID...|SELECTOR [--reason TEXT]",
		Description: `EXAMPLES
  runner hold 1042 --reason "wait for the audit"
  runner hold --label nightly --yes
  runner list --held

A held task starts only after runner release. The state of a held task is
blocked. A held task gives up its lane, so that other tasks of the lane can run,
but keeps its unique key. A held task can still expire, and is still
cancelled if a task of its --after does not complete. Running and finished tasks
stay unchanged. If you hold a task again, the user, time and reason of the first
hold stay.

With a selector, hold changes waiting tasks only. If it matches several tasks,
hold asks for confirmation on a terminal; without a terminal hold needs --yes.
hold prints a line for each task: its id and state.

EXIT STATUS
  0   the tasks are held; also if no task was selected
  1   a given task runs or has finished; the other tasks are held. Also 1 if you
      answered no; then nothing was changed
  2   invalid usage; nothing was changed
  3   some ids do not exist; the other tasks are held
  75  the database is busy, or the disk is full`,
		Flags:  bulk.Options(a, cli.TextOption("reason", "TEXT", "reason that is shown with the hold", "")),
		Action: cli.Action(a, false, readHoldOptions, runWaiting),
	}
}

func releaseCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Control", Usage: "let held tasks start",
		UsageText: "runner release ID...|SELECTOR",
		Description: `EXAMPLES
  runner release 1042
  runner release --label nightly --yes
  runner release --all --dry-run

release ends the hold of tasks. The usual rules then decide when a released task
starts: its start time, the tasks of its --after, and the order of its lane.
Waiting tasks without a hold stay unchanged.

With a selector, release changes held tasks only. If it matches several tasks,
release asks for confirmation on a terminal; without a terminal release
needs --yes. release prints a line for each task: its id and state.

EXIT STATUS
  0   the selected tasks are not held any more; also if no task was selected
  1   a given task runs or has finished; the other tasks are released. Also 1
      if you answered no; then nothing was changed
  2   invalid usage; nothing was changed
  3   some ids do not exist; the other tasks are released
  75  the database is busy, or the disk is full`,
		Flags:  bulk.Options(a),
		Action: cli.Action(a, false, readReleaseOptions, runWaiting),
	}
}

func topCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Aliases: []string{"urgent"}, Category: "Control", Usage: "let waiting tasks start next",
		UsageText: "runner top ID...|SELECTOR",
		Description: `EXAMPLES
  runner top 1042
  runner top 1042 1040         # 1042 starts before 1040
  runner top --label invoice --yes

top sets the priority of a task to one more than the highest priority of the
pending tasks of its queue and of the tasks that wait for its lane. If the task
already starts before all these tasks, its priority stays. top does not end
other reasons to wait: a start time, another task, or a hold. Running and
finished tasks stay unchanged.

With a selector, top changes waiting tasks only. If it matches several tasks,
top asks for confirmation on a terminal; without a terminal top needs --yes. top
prints a line for each task: its id and state. Use "runner status -f" to watch
the tasks.

EXIT STATUS
  0   done; also if no task was selected
  1   a given task runs or has finished; the other tasks are changed. Also 1 if
      you answered no; then nothing was changed
  2   invalid usage; nothing was changed
  3   some ids do not exist; the other tasks are changed
  75  the database is busy, or the disk is full`,
		Flags:  bulk.Options(a),
		Action: cli.Action(a, false, readTopOptions, runWaiting),
	}
}

// waitingOptions are the options of the commands hold, release and top. These commands change only waiting tasks.
type waitingOptions struct {
	bulk.Action
	apply   func(context.Context, *runner.Runner, []int64) ([]runner.ActionResult, error)
	inOrder bool // whether the field "apply" must get all tasks in one call, because its effect depends on their order
}

func readHoldOptions(c *cli.Context, a *cli.App) (waitingOptions, error) {
	reason := cli.Get[string](c, "reason")
	if len(reason) > taskspec.MaxError {
		return waitingOptions{}, failure.Usage("--reason is too long; at most %s", humanize.Size(taskspec.MaxError))
	}
	return readWaitingOptions(c, a, "held", func(ctx context.Context, r *runner.Runner, ids []int64) ([]runner.ActionResult, error) {
		return admin.Hold(ctx, r, ids, reason)
	})
}

func readReleaseOptions(c *cli.Context, a *cli.App) (waitingOptions, error) {
	return readWaitingOptions(c, a, "released", admin.Release)
}

func readTopOptions(c *cli.Context, a *cli.App) (waitingOptions, error) {
	o, err := readWaitingOptions(c, a, "moved to the top", admin.Top)
	if c.NArg() == 0 && c.NumFlags() == 0 {
		return o, failure.Usage("top needs task ids or a selector").Hint("runner top 1042      runner status -f, to watch the tasks")
	}
	o.inOrder = true
	return o, err
}

func readWaitingOptions(c *cli.Context, a *cli.App, done string,
	apply func(context.Context, *runner.Runner, []int64) ([]runner.ActionResult, error)) (waitingOptions, error) {
	s, err := bulk.Read(c, a.Now(), c.Command.Name, done)
	s.OnlyEligible()
	return waitingOptions{Action: s, apply: apply}, err
}

// runWaiting applies hold, release or top to the selected tasks.
func runWaiting(ctx context.Context, r *runner.Runner, p *term.Printer, o waitingOptions) error {
	return o.Run(ctx, r, p, bulk.Change{
		Read:        true,
		OldestFirst: true, // the command top gives the first task of the list the highest priority, so the oldest task must be first
		AtOnce:      o.inOrder,
		Refusal:     func(t jobs.Task) string { return bulk.WhyNotWaiting(t.State) },
		Apply:       func(ctx context.Context, ids []int64) ([]runner.ActionResult, error) { return o.apply(ctx, r, ids) },
		Print: func(out *bulk.Outcomes, result runner.ActionResult, t jobs.Task) {
			if !result.Done {
				out.Refuse(result.ID, string(result.State), bulk.WhyNotWaiting(result.State), o.Record(p, t))
				return
			}
			out.Line(result.ID, string(result.State), bulk.Remark(t), o.Record(p, t))
		},
	})
}

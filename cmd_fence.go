package main

import (
	"context"
	"errors"
	"strconv"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func fenceCommand(a *cli.App) *cli.Command {
	var o fenceOptions
	return &cli.Command{
		Category: "Run", Usage: "inside a task: check that this attempt still owns it",
		UsageText: "runner fence",
		Description: `EXAMPLES
  runner fence && mv build.tmp build
  runner fence || exit 1

Run fence in the command of a task before a step that cannot be undone. fence
exits 0 only if the attempt that runs it still owns the task and nobody has
requested to cancel the task. If fence exits with another status, the command
must stop. fence is a check and not a lock: another attempt may start right
after fence exits. If the system that you write to can compare numbers, send it
$RUNNER_TASK_GENERATION, which grows with each attempt: that system can then
reject writes of an older attempt.

fence reads the environment of the task: RUNNER_TASK_ID, RUNNER_TASK_GENERATION
and RUNNER_DB.`,
		Before: cli.NoArgs("runner fence && ARG"),
		Action: a.Action(o.read, o.run),
	}
}

type fenceOptions struct{ task, generation int64 }

func (o *fenceOptions) read(_ *cli.Context, a *cli.App) (err error) {
	for i, to := range []*int64{&o.task, &o.generation} {
		variable := []string{"RUNNER_TASK_ID", "RUNNER_TASK_GENERATION"}[i]
		text := a.Getenv(variable)
		if text == "" {
			return ui.Usage("fence runs inside a task; %s is not set", variable)
		}
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 1 {
			return ui.Usage("%s=%q: invalid; use a whole number, 1 or more", variable, text)
		}
	}
	return nil
}

func (o *fenceOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	err := checkFence(ctx, r, o.task, o.generation)
	if err != nil && !errors.Is(err, jobs.ErrLost) && !errors.Is(err, jobs.ErrCancelled) {
		return err
	}
	if writeErr := p.PrintRecord(ui.Fence(o.task, o.generation, err == nil)); writeErr != nil {
		return writeErr
	}
	return err
}

// checkFence returns nil if the task runs with the given generation and nobody
// has requested its cancellation. Otherwise the error is of kind jobs.ErrLost,
// jobs.ErrCancelled, or jobs.ErrNotFound (a deleted task).
func checkFence(ctx context.Context, r *runner.Runner, id, generation int64) error {
	task, err := r.Get(ctx, id)
	if err != nil {
		return err
	}
	return taskspec.CheckOwner(task, generation)
}

package main

import (
	"context"
	"errors"
	"strconv"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func fenceCommand(a *cli.App) *cli.Command {
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
		Action: cli.Action(a, false, readFenceOptions, runFence),
	}
}

type fenceOptions struct{ task, generation int64 }

func readFenceOptions(c *cli.Context, a *cli.App) (fenceOptions, error) {
	var o fenceOptions
	if c.Args().Present() {
		return o, ui.Usage("fence takes no arguments; got %q", c.Args().First()).Hint("runner fence && %s", c.Args().First())
	}
	for _, number := range []struct {
		to       *int64
		variable string
		parse    func(string) (int64, error)
	}{{&o.task, "RUNNER_TASK_ID", cli.ParseID}, {&o.generation, "RUNNER_TASK_GENERATION", parseGeneration}} {
		text := a.Getenv(number.variable)
		if text == "" {
			return o, ui.Usage("fence runs inside a task; %s is not set", number.variable)
		}
		var err error
		if *number.to, err = number.parse(text); err != nil {
			return o, ui.Usage("%s=%q: %v", number.variable, text, err)
		}
	}
	return o, nil
}

func parseGeneration(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, errors.New("invalid generation; use a whole number, 1 or more")
	}
	return n, nil
}

func runFence(ctx context.Context, r *runner.Runner, p *ui.Printer, o fenceOptions) error {
	err := admin.Fence(ctx, r, o.task, o.generation)
	if err != nil && !errors.Is(err, jobs.ErrLost) && !errors.Is(err, jobs.ErrCancelled) {
		return err
	}
	if writeErr := p.Only(ui.Fence(o.task, o.generation, err == nil)); writeErr != nil {
		return writeErr
	}
	return err
}

package main

import (
	"context"

	"example.com/runner/internal/bulk"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

func cancelCommand(a *cli.App) *cli.Command {
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
	return o.Cancel(ctx, r, p, o.how, !o.noWait)
}

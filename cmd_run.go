package main

import (
	"context"
	"log/slog"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/logging"
	"example.com/runner/internal/taskflags"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

func runCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "run", Category: "Run", Usage: "add a task, run it here and wait for it",
		UsageText: `runner run [OPTIONS] [--] COMMAND [ARG...]
runner run [OPTIONS] --shell SCRIPT`,
		Flags: append(cli.Without(taskflags.Flags(a), "job", "args", "hold"),
			cli.BoolOption("result", "print the JSON result instead of the output")),
		Description: `EXAMPLES
  runner run -- make test
  runner run --max-attempts 3 --backoff-delay 10s -- fetch-feeds
  runner run --shell 'pg_dump app | gzip > app.gz'

run does the same as enqueue --wait, but it also starts a worker for this task
alone. So it works without runner work. If another worker is free, that worker
may run the task instead.
run prints the whole output of the command and exits with its status. The task
stays in the history: runner list, runner logs.

The first ^C, TERM or HUP cancels the task and waits for its end. The second
one kills it.

EXIT STATUS
  that of the task  the command ended by itself
  2                 invalid usage; nothing was run
  124               timeout of the task (--timeout)
  125               the task was cancelled, expired, deleted or lost, or runner
                    itself failed
  126, 127          the command cannot be executed, or was not found
  128+n             signal n killed the command, or ended runner run`,
		Action: func(c *cli.Context) error { return failure.WhileWaiting(runHere(c, a)) },
	}
}

// runHere adds a task and runs it in this process.
func runHere(c *cli.Context, a *cli.App) (err error) {
	o := enqueueOptions{wait: true, here: true, result: cli.Get[bool](c, "result"), stdin: a.Stdin}
	if o.result && a.Printer.JSON {
		return failure.Exclusive("--result", "--json").Because("the record has the result")
	}
	if o.Task, err = taskflags.Read(c, a, c.Args().Slice()); err != nil {
		return err
	}
	if err := requireSafeDatabase(c, a, false); err != nil {
		return err
	}
	r, err := a.Open(c, true, runner.Options{Concurrency: 1, Queues: []runner.QueueMax{{Queue: o.Spec.Queue, Max: 1}}, OwnProcess: true,
		Log: logOf(a.Printer)})
	if err != nil {
		return err
	}
	defer r.Close()
	r.Register(runner.Commands(runner.CommandOptions{}))
	return runEnqueueWait(c.Context, r, a.Printer, o)
}

// logOf returns the logger for the worker that "runner run" starts. Without --verbose the logger prints nothing, because only the user's
// command may write to stderr.
func logOf(p *term.Printer) *slog.Logger {
	if !p.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return logging.New(p.Stderr, logging.StyleFor("text", p.Stderr, ""), slog.LevelInfo)
}

// workHere starts a worker in this process. The worker runs only the task with this id, and works until the caller calls stop. If the
// worker fails, workHere cancels the returned context with the error as the cause.
func workHere(ctx context.Context, r *runner.Runner, id int64) (_ context.Context, stop func()) {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	ctx, fail := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := admin.WorkOnly(working, r, id); err != nil {
			fail(err)
		}
	}()
	return ctx, func() {
		end()
		<-ended
		fail(nil)
	}
}

// cancelHere cancels the task of an interrupted run and waits for its end.
func cancelHere(ctx context.Context, r *runner.Runner, id int64) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := r.Cancel(ctx, []int64{id}, runner.CancelOptions{}); err != nil {
		return err
	}
	_, err := r.Await(ctx, id)
	return err
}

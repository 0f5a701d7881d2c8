package main

import (
	"log/slog"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func runCommand(a *cli.App) *cli.Command {
	o := &enqueueOptions{here: true}
	return &cli.Command{
		Category: "Run", Usage: "add a task, run it here and wait for it",
		UsageText: `runner run [OPTIONS] [--] COMMAND [ARG...]
runner run [OPTIONS] --shell SCRIPT`,
		Flags: append(cli.Without(o.task.Options(a), "job", "args", "paused"),
			cli.Bool(&o.result, "result", "print the JSON result of the task instead of its output")),
		Description: `EXAMPLES
  runner run -- make test
  runner run --max-attempts 3 --backoff-delay 10s -- fetch-feeds
  runner run --shell 'pg_dump app | gzip > app.gz'

run does the same as enqueue --wait, but the task runs in this process: no other
worker takes it, so the command has the environment, umask and limits of this
shell, and you don't need runner work. run prints the whole output of the
command and exits with its status. The task stays in the history, which runner
list and runner logs show.

If stdin is a pipe or a file, the command reads it. The database doesn't store
what it reads, so there's one attempt only: a retry, or another worker after
runner run was killed, doesn't start the command and says why. With --input -
runner stores up to 16 MiB, for retries too.

On the first ^C, TERM or HUP, run cancels the task and waits until it has ended.
On the second of these signals, run kills the task.

EXIT STATUS
  N                 the command ended by itself with the exit status N
  2                 invalid usage; nothing was run
  124               the task ran longer than its --timeout
  125               the task was cancelled, expired, deleted or lost, or runner
                    itself failed
  126, 127          the command cannot be executed, or was not found
  128+n             signal n killed the command, or ended runner run`,
		Action: func(c *cli.Context) error { return ui.WhileWaiting(o.runHere(c, a)) },
	}
}

// runHere adds a task and runs it in this process.
func (o *enqueueOptions) runHere(c *cli.Context, a *cli.App) (err error) {
	if o.result && a.Printer.JSON {
		return ui.Exclusive("--result", "--json").Because("the record has the result")
	}
	if o.spec, o.caller, err = o.task.Read(c, a, c.Args().Slice()); err != nil {
		return err
	}

	if !c.IsSet("input") {
		o.stdin = ops.Stdin(a.Stdin)
	}
	if o.stdin != nil {
		startOnce(c, a.Printer, &o.spec)
	}

	if err := a.RequireSafeDatabase(false); err != nil {
		return err
	}

	r, err := a.Open(c, true, runner.Options{Log: logOf(a.Printer)})
	if err != nil {
		return err
	}
	defer r.Close()

	return o.addAndWait(c.Context, r, a.Printer)
}

// startOnce makes a task that reads stdin start only once, because no second
// attempt could read the same input.
func startOnce(c *cli.Context, p *ui.Printer, s *jobs.Spec) {
	attempts, losses := s.MaxAttempts, s.MaxLosses
	jobs.AtMostOnce()(s)
	for _, o := range []struct {
		name         string
		given, taken int
	}{
		{"max-attempts", attempts, s.MaxAttempts},
		{"max-losses", losses, s.MaxLosses},
	} {
		if c.IsSet(o.name) && o.given > o.taken {
			p.Say("--%s %d: there is one attempt only, because another could not read stdin again "+
				"(store it: --input -; no stdin: </dev/null)", o.name, o.given)
		}
	}
}

// logOf returns the log of the worker in runner run. Without --verbose it's
// empty, because only the user's command may write to stderr.
func logOf(p *ui.Printer) *slog.Logger {
	if !p.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return ops.NewLog(p.Stderr, ops.StyleFor("text", p.Stderr), slog.LevelInfo)
}

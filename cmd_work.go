package main

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/output"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/commands"
)

func workCommand(a *cli.App) *cli.Command {
	o := &workOptions{}
	return &cli.Command{
		Category: "Run", Usage: "run tasks until interrupted", UsageText: "runner work [OPTIONS]",
		Description: `EXAMPLES
  runner work
  runner work -c 8 -q mail -q media=2
  runner work --on-failure 'mail -s "task $RUNNER_EVENT_TASK failed" ops'

work runs the commands of tasks in the foreground. In each queue the task with
the highest priority starts first, then the oldest task; the worker takes tasks
from its queues in turn. A function (enqueue --job) runs in the Go program
that registers it, not in runner work. work creates a missing database. The log
goes to stderr; work prints on stdout only with --tee.

Each option has an environment variable, such as RUNNER_CONCURRENCY=8
or RUNNER_QUEUE=mail,media=2.

A user with write access to the database can run commands as the user of the
worker. Therefore work rejects a database if other users can write the file or
its directory, unless --insecure-perms is set.

work --on-failure enqueues a command for each task that has failed and is not
retried. The command of --on-failure runs as a task of its own in the same
queue, with a timeout of a minute and up to 10 attempts. Variables such as
RUNNER_EVENT_TASK and RUNNER_EVENT_ERROR describe the failed task, and stdin has
the last 50 lines of its output. In the same way, work --on-success enqueues a
command for each task that completes, and work --on-output for each task that
has printed something.

SIGNALS
  TERM, INT  start no more tasks; after --grace, send TERM to the running tasks,
             and exit 0. If a command then exits 0, its task has completed.
             After any other status, it runs again on the next worker
  again      after a second TERM or INT, kill the running tasks now and exit 1
  HUP        the same as TERM on a terminal; without a terminal, only a message
             in the log`,
		Flags:  o.options(),
		Before: cli.NoArgs("runner enqueue -- ARG"),
		Action: func(c *cli.Context) error {
			if err := o.read(c, a); err != nil {
				return err
			}
			if err := a.RequireSafeDatabase(o.commands.InsecurePerms); err != nil {
				return err
			}

			r, err := a.Open(c, true, o.open)
			if err != nil {
				return err
			}
			defer r.Close()

			return o.run(c.Context, r, a.Printer)
		},
	}
}

type workOptions struct {
	open      runner.Options
	work      runner.WorkOptions
	commands  commands.Options
	sync      string
	logFormat string
	logLevel  string
	tee       bool
	notifier  *ops.Notifier // informs systemd about the worker's state; nil if systemd doesn't ask for that
	terminal  bool          // whether the worker runs in a terminal, and ends when that closes
	pages     cli.Pages     // not served without an address
	pageFlags []cli.Flag
}

// options returns the options, each with its environment variable, and sets
// their defaults.
func (o *workOptions) options() []cli.Flag {
	e := &o.work
	*e = runner.WorkOptions{
		Concurrency: runtime.GOMAXPROCS(0),
		Grace:       30 * time.Second,
		Keep:        taskspec.DefaultKeep,
		KeepFailed:  taskspec.DefaultKeepFailed,
	}
	o.open.WriteEvery = 5 * time.Second
	n := &o.commands
	*n = commands.Options{OutputLimit: taskspec.DefaultOutputLimit, OwnProcess: true}
	o.logFormat, o.logLevel = "auto", "info"
	o.pageFlags = cli.Group("Dashboard", o.pages.Options()...)
	duration := orNone(humanize.ParseDuration)
	return cli.FromEnvironment(append([]cli.Flag{
		cli.Int(&e.Concurrency, "concurrency c", "N", "number of tasks that run at once", 1).Default("number of CPUs"),
		cli.Values(&e.Queues, "queue q", "NAME[=MAX]", "run tasks of this queue only, at most MAX at once; repeatable",
			cli.One(parseQueueMax)).Default("all queues"),
		cli.Bool(&e.UntilEmpty, "until-empty",
			"run all due tasks, also tasks that become due in the meantime; then exit"),
		cli.Value(&e.Grace, "grace", "DUR", "after a signal, let running tasks continue for this time", duration).
			Default("30s"),
		cli.Duration(&n.Timeout, "timeout",
			"time limit of each attempt, for commands that were enqueued without --timeout"),
		cli.Bool(&n.LeaveChildren, "leave-children",
			"use --leave-children for all commands: do not kill the background processes of commands"),
		cli.Value(&e.Lease, "lease", "DUR",
			"if the worker sends no heartbeat for this time, other workers take over its tasks; at least 5s",
			parseLease).Default("60s"),
		cli.Choice(&o.sync, "sync",
			"what a power failure may undo: full: nothing; normal: the last writes; flash: the writes of the last --write-every",
			"full", "normal", "flash").Default("full"),
		cli.Duration(&o.open.WriteEvery, "write-every", "with --sync flash: write to the disk once in this time").Default("5s"),
		cli.Value(&n.OutputLimit, "output-limit", "SIZE",
			"store at most this much output of each attempt, for tasks without --output-limit; 0: none",
			orNone(humanize.ParseSize)).Default("1MiB"),
		cli.Bool(&o.tee, "tee", "copy the output of tasks to stdout and stderr"),
		cli.Text(&n.Hooks.OnFailure, "on-failure", "CMD", "run CMD as a task for each failed task without its own --on-failure"),
		cli.Text(&n.Hooks.OnSuccess, "on-success", "CMD",
			"run CMD as a task for each completed task without its own --on-success"),
		cli.Text(&n.Hooks.OnRecovery, "on-recovery", "CMD",
			"run CMD as the --on-recovery of each task without its own --on-recovery"),
		cli.Text(&n.Hooks.OnOutput, "on-output", "CMD", "run CMD as the --on-output of each task without its own --on-output"),
		cli.Value(&e.Keep, "keep", "DUR", "delete completed and cancelled tasks after this time; 0s: never", duration).
			Default("7d"),
		cli.Value(&e.KeepFailed, "keep-failed", "DUR", "delete failed tasks after this time; 0s: never", duration).
			Default("30d"),
		cli.Value(&e.Name, "name", "TEXT", "name of this worker", parseWorkerName).Default("HOST:PID"),
		cli.Bool(&n.InsecurePerms, "insecure-perms", "accept a database that other users can write"),
		cli.Text(&o.pages.Listen, "serve", "ADDR", "serve the dashboard and metrics at ADDR, as runner serve does"),
		cli.Choice(&o.logFormat, "log-format",
			"format of the log; auto chooses one for a terminal, for the systemd journal or for a file",
			"auto", "text", "json").Default("auto"),
		cli.Choice(&o.logLevel, "log-level", "log only messages of this level or a higher one",
			"debug", "info", "warn", "error").Default("info"),
	}, o.pageFlags...))
}

func (o *workOptions) read(c *cli.Context, a *cli.App) (err error) {
	p := a.Printer
	o.terminal = p.Stdout.TTY || p.Stderr.TTY || ui.IsTerminal(a.Stdin)
	if o.commands.PagesURL, err = o.pages.FirstPage(); err != nil {
		return err
	}
	if o.pages.Listen == "" {
		for _, f := range o.pageFlags {
			if name := f.Names()[0]; c.IsSet(name) && name != "public-url" {
				return ui.Usage("--%s requires --serve", name).Hint("runner work --serve 127.0.0.1:8484")
			}
		}
	}
	if err := o.readSync(c); err != nil {
		return err
	}

	for i, q := range o.work.Queues {
		if slices.ContainsFunc(o.work.Queues[:i], func(other jobs.QueueMax) bool { return other.Name == q.Name }) {
			return ui.Usage("--queue %s is repeated", q.Name)
		}
	}

	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return err
	}

	o.open.Log = ops.NewLog(p.Stderr, ops.StyleFor(o.logFormat, p.Stderr), level)
	o.pages.Log = o.open.Log
	if o.tee {
		raw := *p
		raw.JSON = false
		to := &output.LogPrinter{P: &raw, Named: o.work.Concurrency > 1, Log: o.open.Log}
		o.commands.Tee = to.Copy
	}
	if o.notifier = ops.NewNotifier(a.Getenv("NOTIFY_SOCKET"), o.open.Log); o.notifier != nil {
		o.work.Liveness, o.work.LivenessEvery = o.notifier.Report, o.notifier.Every
	}

	return nil
}

// readSync reads --sync and --write-every.
func (o *workOptions) readSync(c *cli.Context) error {
	switch o.sync {
	case "normal":
		o.open.Sync = runner.SyncNormal
	case "flash":
		o.open.Sync = runner.SyncFlash
		return nil
	}

	if c.IsSet("write-every") {
		return ui.Usage("--write-every requires --sync flash").Hint("runner work --sync flash")
	}

	o.open.WriteEvery = 0
	return nil
}

// orNone turns 0 into -1, which the library takes for "none", or "for ever" for
// the age of tasks. There 0 means the default.
func orNone[T int64 | time.Duration](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		value, err := parse(text)
		if value == 0 {
			value = -1
		}
		return value, err
	}
}

// parseQueueMax parses NAME[=MAX].
func parseQueueMax(text string) (jobs.QueueMax, error) {
	name, limit, limited := strings.Cut(text, "=")
	q := jobs.QueueMax{Name: name}
	if _, err := cli.ParseQueue(name); err != nil || !limited {
		return q, err
	}
	var err error
	q.Max, err = cli.ParseInt(limit, 1)
	return q, err
}

// minLease is the shortest lease that the command line allows. A busy machine
// could renew a shorter one too late.
const minLease = 5 * time.Second

func parseLease(text string) (time.Duration, error) {
	d, err := humanize.ParseDuration(text)
	if err == nil && d < minLease {
		err = errors.New("too short; use at least " + humanize.WriteDuration(minLease))
	}
	return d, err
}

func parseWorkerName(text string) (string, error) {
	if len(text) > taskspec.MaxText || strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("invalid name; use at most 200 bytes without control characters")
	}
	return text, nil
}

func (o *workOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	// Handle signals before the address of the pages is printed: a program that
	// reads it may send a signal at once.
	working, stop := ui.HandleWorker(ctx, r, o.open.Log, o.terminal)
	defer stop()

	if o.pages.Listen != "" {
		stop, err := cli.ServeBeside(ctx, r, p, &o.pages)
		if err != nil {
			return err
		}
		defer stop()
	}

	r.Register(commands.Handler(o.commands))
	defer o.notifier.Stop()

	err := r.Work(working, o.work)
	switch {
	case errors.Is(err, jobs.ErrShutdown): // the log already contains the error
		return ui.ExitStatus(1)
	case working.Err() != nil && errors.Is(err, context.Canceled): // a signal came before the worker started
		return nil
	}

	return err
}

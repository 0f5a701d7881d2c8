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
	"example.com/runner/web"
)

func workCommand(a *cli.App) *cli.Command {
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
		Flags: workFlags(),
		Action: func(c *cli.Context) error {
			o, err := readWorkOptions(c, a)
			if err != nil {
				return err
			}
			if err := a.RequireSafeDatabase(c, o.engine.InsecurePerms); err != nil {
				return err
			}
			r, err := a.Open(c, true, o.engine)
			if err != nil {
				return err
			}
			defer r.Close()
			return runWork(c.Context, r, a.Printer, o)
		},
	}
}

// workFlags returns the options of the command work, each with its environment variable.
func workFlags() []cli.Flag {
	return cli.FromEnvironment(append([]cli.Flag{
		cli.IntOption("concurrency c", "N", "number of tasks that run at once", runtime.GOMAXPROCS(0), 1).Default("number of CPUs"),
		cli.Repeated("queue q", "NAME[=MAX]", "run tasks of this queue only, at most MAX at once; repeatable",
			cli.One(parseQueueMax)).Default("all queues"),
		cli.BoolOption("until-empty", "run all due tasks, also tasks that become due in the meantime; then exit"),
		cli.DurationOption("grace", "after a signal, let running tasks continue for this time", 30*time.Second).Default("30s"),
		cli.DurationOption("timeout", "time limit of each attempt, for commands that were enqueued without --timeout", 0),
		cli.BoolOption("leave-children", "use --leave-children for all commands: do not kill the background processes of commands"),
		cli.Scalar("lease", "DUR", "if the worker sends no heartbeat for this time, other workers take over its tasks; at least 5s",
			time.Minute, parseLease).Default("60s"),
		cli.ChoiceOption("sync",
			"what a power failure may undo: full: nothing; normal: the last writes; flash: the writes of the last --write-every",
			"full", "full", "normal", "flash").Default("full"),
		cli.DurationOption("write-every", "with --sync flash: write to the disk once in this time", 5*time.Second).Default("5s"),
		cli.SizeOption("output-limit", "store at most this much output of each attempt, for tasks without --output-limit; 0: none",
			taskspec.DefaultOutputLimit).Default("1MiB"),
		cli.BoolOption("tee", "copy the output of tasks to stdout and stderr"),
		cli.TextOption("on-failure", "CMD", "run CMD as a task for each failed task without its own --on-failure", ""),
		cli.TextOption("on-success", "CMD", "run CMD as a task for each completed task without its own --on-success", ""),
		cli.TextOption("on-recovery", "CMD", "run CMD as the --on-recovery of each task without its own --on-recovery", ""),
		cli.TextOption("on-output", "CMD", "run CMD as the --on-output of each task without its own --on-output", ""),
		cli.DurationOption("keep", "delete completed and cancelled tasks after this time; 0s: never", taskspec.DefaultKeep).Default("7d"),
		cli.DurationOption("keep-failed", "delete failed tasks after this time; 0s: never", taskspec.DefaultKeepFailed).Default("30d"),
		cli.Scalar("name", "TEXT", "name of this worker", "", parseWorkerName).Default("HOST:PID"),
		cli.BoolOption("insecure-perms", "accept a database that other users can write"),
		cli.TextOption("serve", "ADDR", "serve the dashboard and metrics at ADDR, as runner serve does", ""),
		cli.ChoiceOption("log-format",
			"format of the log; auto chooses one for a terminal, for the systemd journal or for a file",
			"auto", "auto", "text", "json").Default("auto"),
		cli.ChoiceOption("log-level", "log only messages of this level or a higher one", "info",
			"debug", "info", "warn", "error").Default("info"),
	}, cli.Group("Dashboard", cli.PagesOptions()...)...))
}

type workOptions struct {
	engine     runner.Options
	untilEmpty bool
	commands   runner.CommandOptions
	notifier   *ops.Notifier      // informs systemd about the state of the worker; nil if systemd does not ask for that
	terminal   bool               // whether the worker runs in a terminal; if so, it ends when the terminal closes
	serve      *web.ServerOptions // options of the web pages; nil if they are not served
	pagesURL   string             // URL of the web pages, for the environment of hooks; empty if unknown
	printToken bool               // whether to print the address of the pages even if stderr is a log; the address contains the token
}

func readWorkOptions(c *cli.Context, a *cli.App) (workOptions, error) {
	p := a.Printer
	o := workOptions{untilEmpty: cli.Get[bool](c, "until-empty"), terminal: p.Stdout.TTY || p.Stderr.TTY ||
		ui.IsTerminal(a.Stdin)}
	if c.Args().Present() {
		return o, ui.Usage("work takes no arguments; got %q", c.Args().First()).Hint("runner enqueue -- %s", c.Args().First())
	}
	o.engine = runner.Options{Concurrency: cli.Get[int](c, "concurrency"), Queues: cli.Get[[]runner.QueueMax](c, "queue"),
		Grace: orNone(cli.Get[time.Duration](c, "grace")), Timeout: cli.Get[time.Duration](c, "timeout"),
		Lease: cli.Get[time.Duration](c, "lease"), Name: cli.Get[string](c, "name"),
		LeaveChildren: cli.Get[bool](c, "leave-children"), InsecurePerms: cli.Get[bool](c, "insecure-perms"), OwnProcess: true,
		Hooks: jobs.Hooks{OnFailure: cli.Get[string](c, "on-failure"), OnSuccess: cli.Get[string](c, "on-success"),
			OnRecovery: cli.Get[string](c, "on-recovery"), OnOutput: cli.Get[string](c, "on-output")}}
	o.engine.OutputLimit = orNone(cli.Get[int64](c, "output-limit"))
	o.engine.Keep = orNone(cli.Get[time.Duration](c, "keep"))
	o.engine.KeepFailed = orNone(cli.Get[time.Duration](c, "keep-failed"))
	served := cli.ReadPagesOptions(c)
	var err error
	if o.pagesURL, err = served.FirstPage(); err != nil {
		return o, err
	}
	if address := cli.Get[string](c, "serve"); address != "" {
		served.Listen = address
		o.serve, o.printToken = &served, cli.Get[bool](c, "print-token")
	}
	for _, f := range cli.PagesOptions() {
		if name := f.Names()[0]; o.serve == nil && c.IsSet(name) && name != "public-url" {
			return o, ui.Usage("--%s requires --serve", name).Hint("runner work --serve 127.0.0.1:8484")
		}
	}
	if err := readSync(c, &o.engine); err != nil {
		return o, err
	}
	for i, q := range o.engine.Queues {
		if slices.ContainsFunc(o.engine.Queues[:i], func(other runner.QueueMax) bool { return other.Queue == q.Queue }) {
			return o, ui.Usage("--queue %s is repeated", q.Queue)
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cli.Get[string](c, "log-level"))); err != nil {
		return o, err
	}
	o.engine.Log = ops.NewLog(p.Stderr, ops.StyleFor(cli.Get[string](c, "log-format"), p.Stderr), level)
	o.commands.PagesURL = o.pagesURL
	if cli.Get[bool](c, "tee") {
		raw := *p
		raw.JSON = false
		to := &output.LogPrinter{P: &raw, Named: o.engine.Concurrency > 1, Log: o.engine.Log}
		o.commands.Tee = to.Copy
	}
	if o.notifier = ops.NewNotifier(a.Getenv("NOTIFY_SOCKET"), o.engine.Log); o.notifier != nil {
		o.engine.Liveness, o.engine.LivenessEvery = o.notifier.Report, o.notifier.Every
	}
	return o, nil
}

// readSync reads --sync and --write-every. Without --lease it sets the lease to 0, so that the library chooses a default that fits --sync.
func readSync(c *cli.Context, o *runner.Options) error {
	switch cli.Get[string](c, "sync") {
	case "normal":
		o.Sync = runner.Normal
	case "flash":
		o.Sync, o.WriteEvery = runner.Flash, cli.Get[time.Duration](c, "write-every")
	}
	if o.Sync != runner.Flash && c.IsSet("write-every") {
		return ui.Usage("--write-every requires --sync flash").Hint("runner work --sync flash")
	}
	if !c.IsSet("lease") {
		o.Lease = 0
	}
	return nil
}

// orNone turns 0 into -1, which the library takes for "none", or "for ever" for the age of tasks. There 0 means the default.
func orNone[T int64 | time.Duration](value T) T {
	if value == 0 {
		return -1
	}
	return value
}

// parseQueueMax parses NAME[=MAX].
func parseQueueMax(text string) (runner.QueueMax, error) {
	name, most, limited := strings.Cut(text, "=")
	q := runner.QueueMax{Queue: name}
	if _, err := cli.ParseQueue(name); err != nil || !limited {
		return q, err
	}
	var err error
	q.Max, err = cli.ParseInt(most, 1)
	return q, err
}

// minLease is the shortest lease that the command line allows. With a shorter lease a busy machine could renew it too late.
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

func runWork(ctx context.Context, r *runner.Runner, p *ui.Printer, o workOptions) error {
	// Handle signals before the address of the pages is printed: a program that reads the address may send a signal at once.
	working, stop := ui.HandleWorker(ctx, r, o.engine.Log, o.terminal)
	defer stop()
	if o.serve != nil {
		o.serve.Log = o.engine.Log
		stop, err := cli.ServeBeside(ctx, r, p, *o.serve, o.printToken)
		if err != nil {
			return err
		}
		defer stop()
	}
	r.Register(runner.Commands(o.commands))
	defer o.notifier.Stop()
	work := r.Work
	if o.untilEmpty {
		work = r.WorkUntilEmpty
	}
	err := work(working)
	switch {
	case errors.Is(err, jobs.ErrShutdown): // the log already contains the error
		return ui.ExitStatus(1)
	case working.Err() != nil && errors.Is(err, context.Canceled): // a signal ended the context "working" before the worker started
		return nil
	}
	return err
}

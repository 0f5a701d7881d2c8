package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/await"
	"example.com/runner/internal/batch"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/output"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/taskflags"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func enqueueCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "enqueue", Category: "Run", Usage: "add a task, or many tasks (--each, --batch)",
		UsageText: `runner enqueue [OPTIONS] [--] COMMAND [ARG...]
runner enqueue [OPTIONS] --shell SCRIPT
runner enqueue [OPTIONS] --job NAME [--args JSON|@FILE|-]
runner enqueue [OPTIONS] --each [-0] -- COMMAND [ARG|{}|{.}...] < LINES
runner enqueue [OPTIONS] --batch FILE|- [-w]`,
		Flags:       enqueueFlags(a),
		Description: enqueueHelp(),
		Action: func(c *cli.Context) error {
			o, err := readEnqueueOptions(c, a)
			if err == nil {
				err = enqueueIn(c, a, o)
			}
			if o.wait {
				err = failure.WhileWaiting(err)
			}
			return err
		},
	}
}

// enqueueHelp returns the text of the help below the options.
func enqueueHelp() string {
	return `EXAMPLES
  id=$(runner enqueue -- backup.sh --full)
  runner enqueue -w -- make test       # exit with the status of the task
  runner enqueue --in 10m --max-attempts 5 --retry-on 75 -- sync.sh

enqueue prints the id of the task on stdout, and nothing else. It does so when
the task is on the disk. From then on the task survives a power failure.

The command begins at the first word that is not an option, so the options of
runner stand before it. No shell runs the command, except with --shell. enqueue
looks up the program now: in the current PATH or, if its name has a slash,
relative to --cwd.

The database stores the value of a variable that -e sets. Use --env-file for
secrets: each start reads the file again, and nothing stores its content. It
must be a regular file of at most 1 MiB, with NAME=VALUE lines and # comments.

MORE EXAMPLES
  runner enqueue --after 1036 -- test.sh
  runner enqueue --lane acct-7 -- invoice.sh 7
  runner enqueue --shell 'pg_dump app | gzip > app.gz'
  runner enqueue --job email.send --args '{"to":"ann@example.com"}'
  find . -name '*.mov' -print0 | runner enqueue --each -0 -- convert {} {.}.mp4

UNIQUE KEYS
A task holds its unique key until it finishes. With --unique-for it also holds
the key for that time after the enqueue, even if it has finished and was
deleted: then you can repeat a failed enqueue with the same options, and the
task is added once. With --unique-states it also holds the key while it is in
one of these states. With --unique-period there is one task in each period: 24h
begins at midnight UTC. With --unique-args the key is the command line. While a
task holds the key, enqueue adds no task and prints the id of that task.
runner delete frees the key.

EACH
--each adds a task for each line of stdin or of --arg-file, as xargs -n1 and
parallel do; blank lines are skipped. -0 reads names that end with a NUL, so
that a name may be any bytes. In COMMAND the placeholders are, for a/b.tar.gz:
  {}    a/b.tar.gz     the line
  {.}   a/b.tar        without its extension
  {/}   b.tar.gz       without its directory
  {/.}  b.tar          without both
  {//}  a              its directory
Without a placeholder the line is the last argument. With --shell the script
gets the line as "$1". No shell reads the lines. The tasks are one transaction:
if one line is invalid, enqueue names it and adds no task.

BATCH
--batch reads JSON Lines. A line is an object with the keys of list --json, or
an array with the words of a command. Keys:
` + batch.Keys() + `
Durations are in seconds, and input is base64. after and after_any refer to
earlier lines by their id. Flags set the defaults of all lines. A batch is one
transaction: if a line is invalid, enqueue names it and adds no task. With -w
enqueue waits for all tasks of the batch and shows the progress, as wait does.

EXIT STATUS
  0   the task is on the disk; with --wait: the task completed
  1   program not found, or invalid line in the batch; nothing was enqueued
  2   invalid usage; nothing was enqueued
  3   a task of --after does not exist; nothing was enqueued
  75  database busy or disk full; nothing was enqueued, safe to try again

EXIT STATUS with --batch or --each, and --wait
  0    all tasks completed
  1    some tasks did not complete, or --keep-going left out invalid lines
  124  --wait-timeout
  125  nothing was enqueued, or runner itself failed

EXIT STATUS with --wait
  that of the task  the command ended by itself
  124               --wait-timeout, or timeout of the task; stderr says which
  125               the task was cancelled, expired, deleted or lost, or some
                    output is missing, or runner itself failed
  126, 127          the command cannot be executed, or was not found
  128+n             signal n killed the command, or ended the waiting`
}

func enqueueIn(c *cli.Context, a *cli.App, o enqueueOptions) error {
	if !o.many() && !o.wait {
		runtime.GOMAXPROCS(1) // the command makes one write in one goroutine; more threads only slow it down
	}
	r, err := a.Open(c, true, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	switch {
	case o.many():
		options := batch.Options{File: o.batch, Option: "--batch", Stdin: o.stdin, Base: o.Spec, Caller: o.Caller, NoResolve: o.NoResolve,
			KeepGoing: o.keepGoing, Notes: o.notes, Each: o.each}
		if o.each != nil {
			options.File, options.Option = o.argFile, "--arg-file"
		}
		if o.wait {
			options.Wait = func(ctx context.Context, added []runner.Enqueued) error {
				return waitForBatch(ctx, r, a.Printer, added, o.waitTimeout)
			}
		}
		return batch.Run(c.Context, r, a.Printer, options)
	case o.wait:
		return runEnqueueWait(c.Context, r, a.Printer, o)
	}
	return runEnqueue(c.Context, r, a.Printer, o)
}

func enqueueFlags(a *cli.App) []cli.Flag {
	return slices.Concat(
		taskflags.Flags(a),
		cli.Group(taskflags.What,
			cli.TextOption("batch", "FILE|-", "add a task for each line of a file of JSON Lines", ""),
			cli.BoolOption("each", "add a task for each line of stdin; {} in COMMAND is the line"),
			cli.BoolOption("null 0", "with --each: lines end with a NUL, as find -print0 writes them"),
			cli.TextOption("arg-file", "FILE|-", "with --each: read the lines from FILE (stdin)", "-"),
			cli.BoolOption("label-each", "with --each: label each task with its line"),
			cli.BoolOption("keep-going", "with --batch or --each: add the valid lines, report the others, exit 1")),
		cli.Group("Waiting",
			cli.BoolOption("wait w", "show the output, exit with the status of the task; ^C ends only the wait"),
			cli.DurationOption("wait-timeout", "stop waiting after this time, exit 124 (never)", 0),
			cli.BoolOption("result", "with --wait: print the JSON result instead of the output")))
}

type enqueueOptions struct {
	taskflags.Task

	wait        bool
	waitTimeout time.Duration // 0 means no timeout
	result      bool
	here        bool // run the task in this process

	batch     string      // a file, or "-" for stdin
	each      *batch.Each // the commands of --each; nil without it
	argFile   string      // as batch, for --each
	keepGoing bool
	stdin     io.Reader
}

// many reports whether the command adds a task for each line of its input.
func (o *enqueueOptions) many() bool { return o.batch != "" || o.each != nil }

func readEnqueueOptions(c *cli.Context, a *cli.App) (enqueueOptions, error) {
	o := enqueueOptions{wait: cli.Get[bool](c, "wait"), waitTimeout: cli.Get[time.Duration](c, "wait-timeout"),
		result: cli.Get[bool](c, "result"), batch: cli.Get[string](c, "batch"), argFile: cli.Get[string](c, "arg-file"),
		keepGoing: cli.Get[bool](c, "keep-going"), stdin: a.Stdin}
	var err error
	if o.Task, err = taskflags.Read(c, a, c.Args().Slice()); err != nil {
		return o, err
	}
	if c.Bool("each") {
		o.each = &batch.Each{Words: o.Words, Shell: cli.Get[string](c, "shell"), Null: cli.Get[bool](c, "null"),
			Label: cli.Get[bool](c, "label-each")}
		if err := o.each.Validate(); err != nil {
			return o, err
		}
	}
	return o, o.validate(c)
}

// validate returns an error if two options that only enqueue has contradict each other.
func (o *enqueueOptions) validate(c *cli.Context) error {
	for _, name := range []string{"null", "arg-file", "label-each"} {
		if o.each == nil && c.IsSet(name) {
			return failure.Usage("--%s requires --each", name).Hint("runner enqueue --each -- COMMAND {}")
		}
	}
	switch {
	case o.each != nil && o.result:
		return failure.Exclusive("--result", "--each").Hint("runner wait --result")
	case o.batch != "" && o.result:
		return failure.Exclusive("--result", "--batch").Hint("runner wait --result")
	case !o.many() && o.keepGoing:
		return failure.Usage("--keep-going requires --batch or --each")
	case c.IsSet("label") && cli.Get[bool](c, "label-each"):
		return failure.Exclusive("--label", "--label-each")
	case !o.wait && c.IsSet("wait-timeout"):
		return failure.Usage("--wait-timeout requires --wait")
	case !o.wait && o.result:
		return failure.Usage("--result requires --wait")
	case o.result && cli.Get[bool](c, "json"):
		return failure.Exclusive("--result", "--json").Because("the record has the result")
	}
	return nil
}

// runEnqueue adds a task and prints its id.
func runEnqueue(ctx context.Context, r *runner.Runner, p *term.Printer, o enqueueOptions) error {
	added, err := r.Add(ctx, o.Spec)
	if err != nil {
		return err
	}
	one := added[0]
	if p.JSON {
		return batch.PrintEnqueued(ctx, r, p, added)
	}
	p.Print(strconv.FormatInt(one.ID, 10) + "\n")
	if !p.Interactive() {
		return nil
	}
	switch {
	case one.Kept:
		_, err := noteKept(ctx, r, p, one.ID)
		return err
	case one.Replaced:
		p.Note("task %d had this key and had not started: it is this one now; follow: runner logs -f %[1]d", one.ID)
	default:
		p.Note("in %s; follow: runner logs -f %d", o.Spec.Queue, one.ID)
	}
	if len(o.Spec.After)+len(o.Spec.AfterAny) > 0 {
		if err := await.NoteDependencies(ctx, r, p, one.ID); err != nil {
			return err
		}
	}
	return o.notes(ctx, r, p)
}

// noteKept prints to a terminal that nothing was added, because task id holds the unique key, and why that task still holds it. It returns
// the state of that task.
func noteKept(ctx context.Context, r *runner.Runner, p *term.Printer, id int64) (jobs.State, error) {
	t, err := r.Get(ctx, id)
	until := t.CreatedAt.Add(t.UniqueFor)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		p.Note("task %d was deleted, but holds this key for its --unique-for or --unique-period: nothing was added", id)
		return "", nil
	case err != nil:
		return "", err
	case !t.State.Finished():
		p.Note("task %d has this key and is unfinished: nothing was added; follow: runner logs -f %[1]d", id)
	case until.After(p.Now()):
		p.Note("task %d has %s and holds this key until %s: nothing was added; details: runner show %[1]d", id, t.State,
			humanize.Clock(until, p.Now()))
	default:
		p.Note("task %d has %s and holds this key: nothing was added; details: runner show %[1]d", id, t.State)
	}
	return t.State, nil
}

// notes prints hints about probable mistakes to a terminal: a misplaced option, a paused queue, a missing worker.
func (o *enqueueOptions) notes(ctx context.Context, r *runner.Runner, p *term.Printer) error {
	if !p.Interactive() {
		return nil
	}
	if stray := taskflags.StrayOption(o.Words); stray != "" {
		p.Note("%s went to %s: runner's options come before the command", stray, o.Words[0])
	}
	pauses, err := r.Pauses(ctx)
	if pause, ok := pauses.Of(o.Spec.Queue); ok {
		what := "queue " + o.Spec.Queue + " is"
		if admin.AllPaused(pauses) {
			what = "all queues are"
		}
		p.Note("%s paused (%s, by %s)", what, humanize.Age(p.Now().Sub(pause.At)), pause.By)
	}
	if err != nil {
		return err
	}
	workers, err := r.Workers(ctx)
	if alive, _, _ := admin.LiveWorkers(workers); err == nil && alive == 0 && !o.wait {
		p.Note("no worker is running on this database")
	}
	return err
}

// runEnqueueWait adds a task, shows its output, and exits with the status of the task.
func runEnqueueWait(ctx context.Context, r *runner.Runner, p *term.Printer, o enqueueOptions) error {
	ctx, release := await.Context(ctx, 0)
	defer release()
	to := &output.LogPrinter{P: p, Follow: true}
	var live *output.Live
	if !p.JSON && !o.result {
		live = output.NewLive(r, to)
		defer live.Close()
	}
	added, err := admin.AddThen(ctx, r, o.Spec, func(added runner.Enqueued) error {
		_ = live.Bind(added.ID) // if this fails, no worker finds the socket, and the stored output is printed
		return nil
	})
	if s, ok := errors.AsType[signals.Received](err); ok { // the signal came before the write began
		p.Say("nothing was enqueued")
		return failure.ExitStatus(s.Status())
	}
	if err != nil {
		return err
	}
	id := added.ID
	var state jobs.State // of a task that was kept
	if added.Kept {
		state, err = noteKept(ctx, r, p, id)
	} else {
		p.Note("task %d in %s", id, o.Spec.Queue)
		err = o.notes(ctx, r, p)
	}
	if err != nil {
		return err
	}
	if o.here {
		var stop func()
		ctx, stop = workHere(ctx, r, id)
		defer stop()
	} else if !state.Finished() {
		await.NoteMissingWorker(ctx, r, p, "--wait-timeout")
	}
	if o.waitTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.waitTimeout, await.TimedOut{After: o.waitTimeout})
		defer cancel()
	}
	if !p.JSON && !o.result {
		live.Serve(jobs.Task{ID: id})
		// Show all attempts of a new task, because its first attempt may have ended already.
		tasks := map[int64]*output.Cursor{id: {Live: live, Range: output.Range{All: !added.Kept, Lines: -1}}}
		if err := output.Follow(ctx, r, []int64{id}, tasks, to); err != nil {
			return o.stopped(ctx, r, p, live, err, added)
		}
		if err := to.Finish(); err != nil {
			return err
		}
	}
	var end error
	err = await.Each(ctx, r, []int64{id}, func(t jobs.Task) (bool, error) {
		if end = await.Finish(p, t); p.JSON && t.State != "" {
			return false, p.Record(batch.EnqueuedRecord(t, added, p.Now()))
		}
		return false, showEnd(p, t, o.result)
	})
	if err != nil {
		return o.stopped(ctx, r, p, live, err, added)
	}
	return to.Complete(end)
}

// stopped returns the error to report for a wait that ended early because of err. It cancels a task that this command has added and
// runs here, and live prints the output of the task until its end.
func (o *enqueueOptions) stopped(ctx context.Context, r *runner.Runner, p *term.Printer, live *output.Live, err error,
	added runner.Enqueued) error {
	if s, ok := errors.AsType[signals.Received](err); ok && o.here && !added.Kept {
		if err := cancelHere(ctx, r, added.ID); err != nil {
			return err
		}
		return failure.ExitStatus(s.Status())
	}
	live.Close() // no other goroutine prints after this
	return await.Stopped(p, err, []int64{added.ID}, 1)
}

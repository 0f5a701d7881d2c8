package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/input"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func enqueueCommand(a *cli.App) *cli.Command {
	var o enqueueOptions
	return &cli.Command{
		Category: "Run", Usage: "add a task, or many tasks (--each, --batch)",
		UsageText: `runner enqueue [OPTIONS] [--] COMMAND [ARG...]
runner enqueue [OPTIONS] --shell SCRIPT
runner enqueue [OPTIONS] --job NAME [--args JSON|@FILE|-]
runner enqueue [OPTIONS] --each [-0] -- COMMAND [ARG|{}|{.}...] < LINES
runner enqueue [OPTIONS] --batch FILE|- [-w]`,
		Flags: slices.Concat(
			o.task.Options(a),
			cli.Group(cli.What,
				cli.Text(&o.task.Batch, "batch", "FILE|-", "add a task for each line of a file of JSON Lines"),
				cli.Bool(&o.task.Each, "each", "add a task for each line of stdin; {} in COMMAND is the line"),
				cli.Bool(&o.null, "null 0", "with --each: lines end with a NUL, as find -print0 writes them")),
			cli.Group("Waiting",
				cli.Bool(&o.task.Wait, "wait w",
					"wait for the task, show its output, exit with its status; ^C ends only the wait"),
				cli.Duration(&o.waitTimeout, "wait-timeout", "stop waiting after this time, exit 124").Default("never"),
				cli.Bool(&o.result, "result", "with --wait: print the JSON result instead of the output"))),
		Description: enqueueHelp(),
		Action: func(c *cli.Context) error {
			err := o.read(c, a)
			if err == nil {
				err = o.enqueue(c, a)
			}
			if o.task.Wait {
				err = ui.WhileWaiting(err)
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

enqueue prints the id of the task on stdout, and nothing else; with --each or
--batch, one id, that of the batch. When enqueue prints it, the tasks are on the
disk and survive a power failure.

The command begins at the first word that is not an option, so the options of
runner stand before it. No shell runs the command, except with --shell. enqueue
looks up the program now: in the current PATH or, if its name has a slash,
relative to --cwd.

The database stores the value of a variable that -e sets. Use --env-file for
secrets: the worker reads the file at each start, and the database does not
store its content. That file has NAME=VALUE lines and # comments, up to 1 MiB.

MORE EXAMPLES
  runner enqueue --after 1036 -- test.sh
  runner enqueue --lane acct-7 -- invoice.sh 7
  runner enqueue --shell 'pg_dump app | gzip > app.gz'
  runner enqueue --job email.send --args '{"to":"ann@example.com"}'
  find . -name '*.mov' -print0 | runner enqueue --each -0 -- convert {} {.}.mp4

UNIQUE KEYS
A task holds its unique key until it finishes. While a task holds the key,
enqueue adds no second task, prints the id of the task that holds the key, and
says so on stderr. With --job, the key belongs to the job: lists show JOB#KEY.
With --unique-for DUR, a task holds its key for at least DUR after the enqueue,
even if the task has finished and a worker has deleted it (work --keep). So you
can repeat an enqueue with --unique-for after an error: the task is added only
once. With --unique-states, a finished task holds its key while it is in one of
the given states. With --unique-args, the command line is the key. For one task
in each period, put the period into the key: --unique backup-$(date +%F).
runner delete frees the key of a task at once, also with --unique-for and
--unique-states.

EACH
enqueue --each adds a task for each line of stdin, as xargs -n1 and parallel do;
empty lines are skipped. With -0, a NUL ends each name instead
of a newline, so that names can contain newlines. COMMAND can contain these
placeholders; the example is the line a/b.tar.gz:
  {}    a/b.tar.gz     the line
  {.}   a/b.tar        the line without its extension
  {/}   b.tar.gz       the line without its directory
  {/.}  b.tar          the line without its directory and its extension
  {//}  a              the directory of the line

Without a placeholder the line is the last argument. --label can have
placeholders, too. With --shell the script
gets the line as "$1". No shell interprets the lines. enqueue adds all tasks in
one transaction: if a line is invalid, enqueue names the line and adds no task.

BATCH
enqueue --batch reads JSON Lines. A line is an array with the words of a
command, or an object with the keys of list --json; it can have these keys:
` + input.Keys() + `

Durations are in seconds, and input is base64. A line can also have the key
"id"; the lists after and after_any contain ids of earlier lines. Options of
enqueue set the defaults of all lines. A batch is one transaction: if a line is
invalid, enqueue names the line and adds no task. With -w enqueue waits for all
tasks of the batch and shows the progress.

` + enqueueStatus
}

// enqueueStatus is the end of the help: the exit statuses.
const enqueueStatus = `EXIT STATUS
  0   the task is on the disk; with --wait: the task completed
  1   program not found, or invalid line in the batch; nothing was enqueued
  2   invalid usage; nothing was enqueued
  3   a task of --after does not exist; nothing was enqueued
  75  database busy or disk full; nothing was enqueued, safe to try again

EXIT STATUS with --batch or --each, and --wait
  0    all tasks completed
  1    some tasks did not complete
  124  --wait-timeout
  125  nothing was enqueued, or runner itself failed

EXIT STATUS with --wait
  N                 the command ended by itself with the exit status N
  124               the wait or the task timed out; stderr says which
  125               the task was cancelled, expired, deleted or lost, or some
                    output is missing, or runner itself failed
  126, 127          the command cannot be executed, or was not found
  128+n             signal n killed the command, or ended the waiting`

// enqueueOptions describe the tasks of enqueue and run, and how to wait for
// them.
type enqueueOptions struct {
	task    cli.TaskFlags
	spec    jobs.Spec // the task; with --batch or --each, the defaults of all lines
	caller  ops.Invocation
	service string // database of this machine's service, which may be the one that the user meant

	null  bool        // whether a NUL ends each line of --each
	each  *input.Each // the command of --each; nil without it
	lines io.Reader   // stdin, which may have the lines

	waitTimeout time.Duration // 0 means no timeout
	result      bool          // whether to print the JSON result instead of the output

	here  bool     // whether to run the task in this process
	stdin *os.File // with here: stdin of the command; nil for /dev/null
}

func (o *enqueueOptions) read(c *cli.Context, a *cli.App) (err error) {
	o.lines = a.Stdin
	words := c.Args().Slice()
	if o.spec, o.caller, err = o.task.Read(c, a, words); err != nil {
		return err
	}
	if o.task.Each {
		if o.each, err = input.NewEach(words, o.task.Shell, o.null); err != nil {
			return err
		}
	}

	return o.validate(c, a.Printer.JSON)
}

// validate returns an error if options of enqueue alone contradict each other,
// or if one requires another that is missing.
func (o *enqueueOptions) validate(c *cli.Context, json bool) error {
	switch {
	case o.each == nil && o.null:
		return ui.Usage("--null requires --each").Hint("runner enqueue --each -- COMMAND {}")
	case o.each != nil && o.result:
		return ui.Exclusive("--result", "--each").Hint("runner wait --result")
	case o.task.Batch != "" && o.result:
		return ui.Exclusive("--result", "--batch").Hint("runner wait --result")
	case !o.task.Wait && c.IsSet("wait-timeout"):
		return ui.Usage("--wait-timeout requires --wait")
	case !o.task.Wait && o.result:
		return ui.Usage("--result requires --wait")
	case o.result && json:
		return ui.Exclusive("--result", "--json").Because("the record has the result")
	}
	return nil
}

func (o *enqueueOptions) enqueue(c *cli.Context, a *cli.App) error {
	r, err := a.Open(c, true, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()

	o.service = a.OtherService()
	switch {
	case o.task.Batch != "" || o.each != nil:
		return o.addMany(c.Context, r, a.Printer)
	case o.task.Wait:
		return o.addAndWait(c.Context, r, a.Printer)
	}

	return o.add(c.Context, r, a.Printer)
}

// add adds the task and prints its id.
func (o *enqueueOptions) add(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	one, err := addOne(ctx, r, o.spec)
	if err != nil {
		return err
	}
	if err := input.PrintEnqueued(ctx, r, p, []jobs.Enqueued{one}, one.ID); err != nil {
		return err
	}

	if one.Kept {
		state, err := noteKept(ctx, r, p, one.ID)
		if err != nil || state.Finished() {
			return err
		}
		return output.NoteWorkers(ctx, r, p, o.service, "enqueue")
	}
	if one.Replaced {
		p.Note("task %d had this key and had not started: it is this one now; follow: runner logs -f %[1]d", one.ID)
	} else {
		p.Note("in %s; follow: runner logs -f %d", o.spec.Queue, one.ID)
	}
	if p.Interactive() && len(o.spec.DependsOn)+len(o.spec.DependsOnAny) > 0 {
		t, err := r.Get(ctx, one.ID)
		if err != nil {
			return err
		}
		if t.Reason == jobs.ReasonDependency {
			p.Note("cancelled: %s", t.Error)
		}
	}
	if err := o.notePause(ctx, r, p); err != nil {
		return err
	}

	return output.NoteWorkers(ctx, r, p, o.service, "enqueue")
}

// addMany adds a task for each line of a batch. With --wait it waits for them.
func (o *enqueueOptions) addMany(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	b, err := input.Open(p, input.Options{File: o.task.Batch, Each: o.each, Stdin: o.lines, Base: o.spec, Caller: o.caller})
	if err != nil {
		return err
	}
	defer b.Close()

	if o.task.Wait {
		var stop func()
		ctx, stop = ui.Until(ctx)
		defer stop()
	}

	added, err := b.Add(ctx, r)
	if err != nil || len(added) == 0 {
		return sayIfStopped(p, err)
	}
	if err := b.Print(ctx, r, added, !o.task.Wait); err != nil { // a wait prints the records at the end
		return err
	}
	if id := input.ID(added); p.Interactive() && id != 0 && !o.task.Wait {
		p.Note("batch %d has %s; follow: runner wait --batch %[1]d", id, humanize.Plural(len(added), "task"))
	}
	if err := o.notePause(ctx, r, p); err != nil {
		return err
	}
	if !o.task.Wait {
		return output.NoteWorkers(ctx, r, p, o.service, "enqueue")
	}

	return input.Wait(ctx, r, p, added, o.waitTimeout)
}

// sayIfStopped returns the error of an enqueue: the exit status of a signal if
// one came before the tasks were added.
func sayIfStopped(p *ui.Printer, err error) error {
	if s, ok := errors.AsType[ui.Received](err); ok {
		p.Say("nothing was enqueued")
		return ui.ExitStatus(s.Status())
	}
	return err
}

func addOne(ctx context.Context, r *runner.Runner, spec jobs.Spec) (jobs.Enqueued, error) {
	added, err := r.EnqueueMany(ctx, spec)
	if err != nil {
		return jobs.Enqueued{}, err
	}
	return added[0], nil
}

// noteKept says on stderr that nothing was added, because task id holds the
// unique key, and why it still does. It returns the state of that task.
func noteKept(ctx context.Context, r *runner.Runner, p *ui.Printer, id int64) (jobs.State, error) {
	say := p.Tell // the record has the key "enqueued"
	t, err := r.Get(ctx, id)
	until := t.CreatedAt.Add(t.Unique.For) // a later enqueue that replaced the task holds the key for longer
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		say("task %d was deleted, but holds this key for its --unique-for: nothing was added", id)
		return "", nil
	case err != nil:
		return "", err
	case !t.State.Finished():
		say("task %d has this key and is unfinished: nothing was added; follow: runner logs -f %[1]d", id)
	case until.After(p.Now()):
		say("task %d has %s and holds this key at least until %s: nothing was added; details: runner show %[1]d", id, t.State,
			humanize.Clock(until, p.Now()))
	default:
		say("task %d has %s and holds this key: nothing was added; details: runner show %[1]d", id, t.State)
	}

	return t.State, nil
}

// notePause says on a terminal that the queue is paused.
func (o *enqueueOptions) notePause(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if !p.Interactive() {
		return nil
	}

	pauses, err := admin.Pauses(ctx, r)
	if pause, ok := pauses.Of(o.spec.Queue); ok {
		what := "queue " + o.spec.Queue + " is"
		if pause != pauses[o.spec.Queue] {
			what = "all queues are"
		}
		p.Note("%s paused by %s; details: runner status", what, pause.By)
	}

	return err
}

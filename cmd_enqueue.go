package main

import (
	"io"
	"os"
	"slices"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/input"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func enqueueCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Run", Usage: "add a task, or many tasks (--each, --batch)",
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
says so on stderr.
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

func enqueueIn(c *cli.Context, a *cli.App, o enqueueOptions) error {
	r, err := a.Open(c, true, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	o.service = a.OtherService(c)
	switch {
	case o.many():
		return o.addMany(c.Context, r, a.Printer)
	case o.wait:
		return o.addAndWait(c.Context, r, a.Printer)
	}
	return o.add(c.Context, r, a.Printer)
}

func enqueueFlags(a *cli.App) []cli.Flag {
	return slices.Concat(
		cli.Flags(a),
		cli.Group(cli.What,
			cli.TextOption("batch", "FILE|-", "add a task for each line of a file of JSON Lines", ""),
			cli.BoolOption("each", "add a task for each line of stdin; {} in COMMAND is the line"),
			cli.BoolOption("null 0", "with --each: lines end with a NUL, as find -print0 writes them")),
		cli.Group("Waiting",
			cli.BoolOption("wait w", "wait for the task, show its output, exit with its status; ^C ends only the wait"),
			cli.DurationOption("wait-timeout", "stop waiting after this time, exit 124", 0).Default("never"),
			cli.BoolOption("result", "with --wait: print the JSON result instead of the output")))
}

// enqueueOptions describe the tasks of enqueue and run, and how to wait for them.
type enqueueOptions struct {
	spec    jobs.Spec // the task; with --batch or --each, the defaults of all lines
	caller  ops.Invocation
	service string // database of this machine's service, which may be the one that the user meant

	file  string      // value of --batch: a file, or "-" for stdin
	each  *input.Each // the command of --each; nil without it
	lines io.Reader   // stdin, which may have the lines

	wait        bool
	waitTimeout time.Duration // 0 means no timeout
	result      bool          // whether to print the JSON result instead of the output

	here  bool     // whether to run the task in this process
	stdin *os.File // with here: stdin of the command; nil for /dev/null
}

// many reports whether the command adds a task for each line of its input.
func (o *enqueueOptions) many() bool { return o.file != "" || o.each != nil }

func readEnqueueOptions(c *cli.Context, a *cli.App) (enqueueOptions, error) {
	o := enqueueOptions{wait: cli.Get[bool](c, "wait"), waitTimeout: cli.Get[time.Duration](c, "wait-timeout"),
		result: cli.Get[bool](c, "result"), file: cli.Get[string](c, "batch"), lines: a.Stdin}
	words := c.Args().Slice()
	var err error
	if o.spec, o.caller, err = cli.ReadTask(c, a, words); err != nil {
		return o, err
	}
	if c.Bool("each") {
		if o.each, err = input.NewEach(words, cli.Get[string](c, "shell"), cli.Get[bool](c, "null")); err != nil {
			return o, err
		}
	}
	return o, o.validate(c)
}

// validate checks the options that only the command enqueue has. It returns an error if two of them contradict each other, or if an option
// requires another one that is missing.
func (o *enqueueOptions) validate(c *cli.Context) error {
	switch {
	case o.each == nil && c.IsSet("null"):
		return ui.Usage("--null requires --each").Hint("runner enqueue --each -- COMMAND {}")
	case o.each != nil && o.result:
		return ui.Exclusive("--result", "--each").Hint("runner wait --result")
	case o.file != "" && o.result:
		return ui.Exclusive("--result", "--batch").Hint("runner wait --result")
	case !o.wait && c.IsSet("wait-timeout"):
		return ui.Usage("--wait-timeout requires --wait")
	case !o.wait && o.result:
		return ui.Usage("--result requires --wait")
	case o.result && cli.Get[bool](c, "json"):
		return ui.Exclusive("--result", "--json").Because("the record has the result")
	}
	return nil
}

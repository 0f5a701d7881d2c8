package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func showCommand(a *cli.App) *cli.Command {
	var o showOptions
	return &cli.Command{
		Category: "Inspect", Usage: "show a task: attempts, times, why it waits",
		UsageText: "runner show ID... [--reveal] [--format TEMPLATE | --command]",
		Flags: []cli.Flag{
			cli.RevealOption(&o.reveal),
			a.FormatOption(),
			cli.Bool(&o.command, "command", "print only the command line that enqueues the task again"),
		},
		Description: `EXAMPLES
  runner show 1042
  runner show 1042 1043 --json
  runner show 1042 --format '{{.state}}'
  runner show 1042 --command           # runner enqueue -q media -- convert.sh

show prints what a task runs, its options and its attempts. For an unfinished
task, show says why the task waits. After a failed attempt, show prints the last
five lines of output; runner logs prints the whole output. show also lists
processes of the task that still run although their attempt has ended.

Without --reveal the values of variables are shown as •••, in JSON as null.

--command prints a command line that enqueues the same task again. The line
contains the names of the task's variables, but not their values: the variables
get the values that they have in the shell that runs the line. With --reveal,
the line contains the values that the variables have in the task. If the task
has an input, the line reads the input from stdin.

In a pipe, show prints a line "KEY<tab>VALUE" for each key of the JSON record,
then a line "attempt" for each attempt, and an empty line between tasks.`,
		Action: a.Action(o.read, cli.Reads(o.run)),
	}
}

type showOptions struct {
	ids     []int64
	reveal  bool
	command bool
}

func (o *showOptions) read(c *cli.Context, a *cli.App) (err error) {
	if o.ids, err = cli.ReadIDs(c.Args().Slice()); err != nil {
		return err
	}
	switch {
	case len(o.ids) == 0:
		return ui.Usage("show needs a task id").Hint("runner show 1042      runner list")
	case o.command && (c.IsSet("format") || a.Printer.JSON):
		return ui.Usage("--command cannot be used with --format or --json")
	}

	return nil
}

func (o *showOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	between := ""
	for _, id := range o.ids {
		s, err := ui.ReadTask(ctx, r, id, p.Now(), o.reveal)
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			continue
		case err != nil:
			return err
		case o.command:
			err = printCommand(p, s.Task, o.reveal)
		default:
			err = p.Show(s.Record,
				func(p *ui.Printer) { p.Print(between); s.Lines(p) },
				func(p *ui.Printer) { p.Print(between); s.Draw(p) })
		}

		if err != nil {
			return err
		}

		between = "\n"
	}

	return ui.MissingTasks(ctx, r, o.ids)
}

// printCommand prints the command line that enqueues a task like t.
func printCommand(p *ui.Printer, t jobs.Task, reveal bool) error {
	text := taskspec.Command(&t, p.Now(), reveal)
	if text == "" {
		return &ui.Error{Code: "conflict", Exit: 1, What: fmt.Sprintf("the args of task %d are not the words of a command", t.ID)}
	}
	if p.Stdout.TTY {
		text = humanize.Safe(text)
	}
	p.Print(text + "\n")
	return nil
}

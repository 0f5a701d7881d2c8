package main

import (
	"context"
	"errors"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func showCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "show", Category: "Inspect", Usage: "show a task: attempts, times, why it waits",
		UsageText: "runner show ID... [--reveal] [--format TEMPLATE]",
		Flags:     []cli.Flag{cli.RevealOption(), cli.FormatOption()},
		Description: `EXAMPLES
  runner show 1042
  runner show 1042 1043 --json
  runner show 1042 --format '{{.state}}'

show prints what a task runs, its options and its attempts. For an unfinished
task it says why the task waits. After a failed attempt it prints the last five
lines of output; runner logs prints all of it. It lists processes that still run
although their attempt has ended.

Without --reveal the values of variables are shown as •••, in JSON as null.
In a pipe, show prints a line "KEY<tab>VALUE" for each key of the JSON record,
then a line "attempt" for each attempt, and an empty line between tasks.

EXIT STATUS
  0   done
  1   no database, or it cannot be read
  2   invalid usage
  3   some tasks do not exist; the others are shown
  75  the database was busy for too long`,
		Action: cli.Action(a, false, readShowOptions, runShow),
	}
}

type showOptions struct {
	ids    []int64
	reveal bool
	format *record.Formatter // template of --format; nil if not given
}

func readShowOptions(c *cli.Context, a *cli.App) (showOptions, error) {
	ids, err := cli.ReadIDs(c.Args().Slice())
	switch {
	case err != nil:
		return showOptions{}, err
	case len(ids) == 0:
		return showOptions{}, failure.Usage("show needs a task id").Hint("runner show 1042      runner list")
	}
	o := showOptions{ids: ids, reveal: cli.Get[bool](c, "reveal")}
	o.format, err = cli.FormatterOf(c, a.Printer)
	return o, err
}

func runShow(ctx context.Context, r *runner.Runner, p *term.Printer, o showOptions) error {
	between := ""
	for _, id := range o.ids {
		s, err := view.ReadTask(ctx, r, id, p.Now(), o.reveal)
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			continue
		case err != nil:
			return err
		case p.JSON:
			err = p.Record(s.Record())
		case o.format != nil:
			err = o.format.Record(s.Record())
		case p.Stdout.TTY:
			p.Print(between)
			s.Draw(p)
		default:
			p.Print(between)
			err = s.Lines(p)
		}
		if err != nil {
			return err
		}
		between = "\n"
	}
	return missingTasks(ctx, r, o.ids)
}

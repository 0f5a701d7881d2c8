package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

func moveCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "move", Category: "Look after", Usage: "carry everything to another database",
		UsageText: "runner move SRC DST\n  runner move --undo SRC",
		Description: `Carries all that is in SRC to DST, each a file or postgres://…: tasks with their
ids, attempts, output, inputs, results, steps and dependencies; schedules,
limits, pauses and counters. DST is made if it is missing, and must be empty.
Stop the workers of both first: it is refused while one lives, or a task runs.

From its beginning on SRC refuses every write, of older programs and of plain
SQL, too, and so does DST until it is complete: no task can run in both. Killed
or cut off, it goes on when the same line is typed again. At its end the rows
of both are counted; the counts are printed, a line per table. SRC stays as it
is, for reading. Then start workers on DST. --undo gives up a move that has not
ended: SRC is used again, DST is to be thrown away.

In a pipe: table and rows, separated by a tab.

EXAMPLES
  runner move /var/lib/runner/runner.db postgres://ann@db.example.com/app
  runner move postgres://ann@db.example.com/app /var/lib/runner/runner.db

EXIT STATUS
  0   everything is in DST, now or before; with --undo: SRC is used again
  1   workers live, DST is not empty, the counts differ, or one of them is part
      of another move; no database
  2   usage; nothing was changed
  75  a database is busy, full or away: type the same again`,
		Flags: []cli.Flag{cli.BoolOption("undo", "give up a move that has not ended")},
		Action: func(c *cli.Context) error {
			o, err := readMoveOptions(c, a)
			if err != nil {
				return err
			}
			r, err := runner.Open(c.Context, o.from, o.options)
			if err != nil {
				return err
			}
			defer r.Close()
			return runMove(c.Context, r, a.Printer, o)
		},
	}
}

type moveOptions struct {
	from, to string // source and destination; to is empty with --undo
	undo     bool
	options  runner.Options // options for opening both databases
}

func readMoveOptions(c *cli.Context, a *cli.App) (moveOptions, error) {
	o := moveOptions{undo: cli.Get[bool](c, "undo")}
	named := c.Args().Slice()
	switch {
	case c.IsSet("db") && cli.Get[string](c, "db") != "":
		return o, failure.Usage("move names its databases as words, not by --db").Hint("runner move SRC DST")
	case o.undo && len(named) != 1:
		return o, failure.Usage("move --undo needs one database").Hint("runner move --undo SRC")
	case !o.undo && len(named) != 2:
		return o, failure.Usage("move needs two databases").Hint("runner move runner.db postgres://…")
	}
	for i, to := range []*string{&o.from, &o.to}[:len(named)] {
		if named[i] == "" {
			return o, failure.Usage("move: an empty name")
		}
		d, err := a.FindDatabase(named[i])
		if err != nil {
			return o, err
		}
		*to = d.Path
	}
	o.options = runner.Options{MustExist: true, BusyTimeout: cli.Get[time.Duration](c, "busy-timeout"),
		UnsafeFS: cli.Get[bool](c, "unsafe-fs"),
		Engine:   postgres.Engine()}
	return o, nil
}

func runMove(ctx context.Context, r *runner.Runner, p *term.Printer, o moveOptions) error {
	if o.undo {
		if err := admin.UndoMove(ctx, r); err != nil {
			return err
		}
		p.Note("%s is used again; throw away what it was moved to", r.Path())
		return nil
	}
	ctx, stop := signals.Until(ctx) // a signal stops the move between two commits
	defer stop()
	progress := term.NewBar(p, r.Path())
	progress.Start("moving", 0)
	moved, err := admin.Move(ctx, r, o.to, o.options, func(done, of int) { progress.Total = of; progress.Step(done) })
	progress.Clear()
	if s, ok := errors.AsType[signals.Received](context.Cause(ctx)); err != nil && ok {
		return failure.ExitStatus(s.Status())
	}
	if err != nil {
		return err
	}
	if moved.Before {
		p.Note("%s was moved to %s before; nothing was done", r.Path(), moved.To)
	} else {
		p.Note("%s refuses writes from now on; start workers on %s", r.Path(), moved.To)
	}
	for _, c := range moved.Rows {
		switch {
		case p.JSON:
			if err := p.Record(record.Moved{Table: c.Table, Rows: c.Rows}); err != nil {
				return err
			}
		case p.Stdout.TTY:
			p.Print(fmt.Sprintf("%-16s %s\n", c.Table, humanize.Count(c.Rows)))
		default:
			p.Fields(c.Table, strconv.FormatInt(c.Rows, 10))
		}
	}
	return nil
}

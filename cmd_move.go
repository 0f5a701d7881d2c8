package main

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/transfer"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/postgres"
)

func moveCommand(a *cli.App) *cli.Command {
	var o moveOptions
	return &cli.Command{
		Category: "Maintain", Usage: "move all data to another database",
		UsageText: "runner move SRC DST",
		Description: `EXAMPLES
  runner move runner.db postgres://ann@db.example.com/app
  runner move postgres://ann@db.example.com/app /var/lib/runner/runner.db

SRC and DST are databases: files, or addresses such as postgres://…. move copies
all data from SRC to DST: the tasks with their ids, attempts, output, inputs,
results, steps and dependencies, and also the schedules, limits, pauses and
counters. move creates a missing DST; an existing DST must have no data. Stop
the workers of both databases first: move fails if a worker runs or a task is
running.

There is no way back but a backup. At the end SRC is marked as moved: it rejects
all writes, also by older programs and by plain SQL, so that no task can run in
both databases. You can still read it. An interrupted move leaves SRC as it was;
run the same command again. At the end move compares the number of rows in both
databases, and prints these numbers, a line for each table. Then start the
workers on DST.

In a pipe, each line is the name of a table, a tab and its number of rows.`,
		Action: func(c *cli.Context) error {
			if err := o.read(c, a); err != nil {
				return err
			}
			r, err := runner.Open(c.Context, o.from, o.options)
			if err != nil {
				return err
			}
			defer r.Close()

			return o.run(c.Context, r, a.Printer)
		},
	}
}

type moveOptions struct {
	from, to string
	options  runner.Options // options for opening both databases
}

func (o *moveOptions) read(c *cli.Context, a *cli.App) error {
	named := c.Args().Slice()
	switch {
	case c.IsSet("db"):
		return ui.Usage("move takes its databases as arguments, not by --db").Hint("runner move SRC DST")
	case len(named) != 2:
		return ui.Usage("move needs two databases").Hint("runner move runner.db postgres://…")
	}

	for i, to := range []*string{&o.from, &o.to} {
		if named[i] == "" {
			return ui.Usage("the name of the database is empty")
		}
		d, err := a.FindDatabase(named[i])
		if err != nil {
			return err
		}
		*to = d.Path
	}

	o.options = runner.Options{
		MustExist:   true,
		BusyTimeout: a.BusyTimeout,
		UnsafeFS:    a.UnsafeFS,
		Engine:      postgres.Engine(),
	}
	return nil
}

func (o *moveOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	ctx, stop := ui.Until(ctx) // after a signal the move stops, and the source stays as it was
	defer stop()

	progress := ui.NewBar(p, "moving", admin.Path(r))
	to, rows, err := o.moveAll(ctx, r, func(done, of int) { progress.Total = of; progress.Step(done) })
	progress.Clear()
	if err = ui.Interrupted(ctx, err); err != nil {
		return err
	}
	if rows == nil {
		p.Note("%s was moved to %s before; nothing was done", admin.Path(r), to)
	} else {
		p.Note("%s rejects writes from now on; start workers on %s", admin.Path(r), to)
	}

	for _, c := range rows {
		text := fmt.Sprintf("%-16s %s\n", c.Table, humanize.Count(c.Rows))
		if err := p.Answer(ui.Moved(c.Table, c.Rows), text); err != nil {
			return err
		}
	}

	return nil
}

// moveAll copies all data of r to the database at o.to, and creates it if it is
// missing. After an error it left the source as it was, or the copy is
// complete: a second call then only says so. It returns where the tasks are now
// (admin.Path), and no rows if an earlier call has finished the move.
func (o *moveOptions) moveAll(
	ctx context.Context, r *runner.Runner, progress func(done, of int),
) (to string, rows []transfer.TableCount, err error) {
	if err := transfer.Check(ctx, db.Of(r), time.Now()); err != nil {
		return "", nil, err
	}

	options := o.options
	options.MustExist = false
	there, err := runner.Open(db.Alone(ctx), o.to, options)
	if err != nil {
		return "", nil, err
	}
	defer there.Close()

	rows, err = transfer.Move(ctx, db.Of(r), db.Of(there), time.Now(), progress)
	return admin.Path(there), rows, err
}

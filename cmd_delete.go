package main

import (
	"context"
	"fmt"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func deleteCommand(a *cli.App) *cli.Command {
	o := &deleteOptions{Bulk: cli.Bulk{Verb: "delete", Done: "deleted"}}
	return &cli.Command{
		Aliases: []string{"rm"}, Category: "Control", Usage: "delete finished tasks",
		UsageText: "runner delete ID...|SELECTOR\nrunner delete --cursor NAME",
		Description: `EXAMPLES
  runner delete 1034
  runner delete -s completed --older-than 1w --yes
  runner delete --all --dry-run

delete removes finished tasks with their attempts and output. You cannot undo a
deletion. Unfinished tasks stay unchanged; to delete an unfinished task, cancel
it first. A finished task stays while an unfinished task waits for it (--after).

With a selector, delete removes finished tasks only. If it matches several
tasks, delete asks for confirmation on a terminal; without a terminal delete
needs --yes. delete prints a line for each task: its id and "deleted".

A Go program that calls ConsumeFinished stores a cursor in the database: its
place in the list of finished tasks. --cursor removes the cursor of a program
that is not used any more, and deletes no task.`,
		Flags:  o.Options(a, cli.Text(&o.cursor, "cursor", "NAME", "remove this cursor of ConsumeFinished; delete no task")),
		Action: a.Action(o.read, o.run),
	}
}

type deleteOptions struct {
	cli.Bulk
	cursor string
}

func (o *deleteOptions) read(c *cli.Context, a *cli.App) error {
	switch {
	case !c.IsSet("cursor"):
		return o.Read(c, a)
	case c.Args().Present():
		return ui.Usage("delete --cursor takes no tasks; got %q", c.Args().First())
	}
	return nil
}

func (o *deleteOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if o.cursor != "" {
		return admin.RemoveCursor(ctx, r, o.cursor)
	}

	selected := len(o.Selection.Filter.IDs) == 0 // and not typed: it's no error if a task stays
	return o.Apply(ctx, r, p, cli.Change{
		Apply: r.Delete,
		Print: func(out *cli.Outcomes, result jobs.ActionResult, t jobs.Task) {
			switch {
			case result.Done:
				out.Line(t, cli.Deleted, "")
			case result.NeededBy != 0 && selected:
				out.Note("task %d stays: task %d needs its result", t.ID, result.NeededBy)
			case result.NeededBy != 0:
				out.Refuse(t, result.State, fmt.Sprintf("task %d needs its result", result.NeededBy))
			default:
				out.Refuse(t, result.State, "it is "+string(result.State))
			}
		},
	})
}

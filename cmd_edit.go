package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func editCommand(a *cli.App) *cli.Command {
	var o editOptions
	return &cli.Command{
		Category: "Control", Usage: "change waiting tasks",
		UsageText: "runner edit ID... [OPTIONS] [-- COMMAND [ARG...]]\nrunner edit ID... --first",
		Description: `EXAMPLES
  runner edit 1042 --priority 9 --queue media
  runner edit 1042 --at 22:00 --timeout 2h
  runner edit 1042 --unset lane,timeout -- backup.sh --full
  runner edit 1042 1040 --first      # 1042 starts before 1040

edit changes the given options of tasks that have not started, or that wait for
another attempt. The other options, the attempts and the history stay. The
list of options shows the defaults of a new task. Of running and finished tasks
only the metadata can change (--meta). If a worker starts the task at the same
moment, the task runs with all old options or with all new options, never with a
mix.

-e adds or replaces one variable. edit looks up a new command as enqueue does.
If you change the due time, the expiry time moves by the same amount. edit
cannot change the job of a task or the tasks that it waits for.

--first sets the priority of a task to one more than the highest priority of the
pending tasks of its queue and of the tasks that wait for its lane. If the task
already starts before all these tasks, its priority stays. --first ends no other
reason to wait: a start time, another task, or a pause.

edit prints a line for each task: its id and state. runner show lists
the changes.`,
		Flags: append(o.edit.Options(a), cli.Group("Order", cli.Bool(&o.first, "first",
			"start before all pending tasks of the queue; several tasks start in the given order"))...),
		Action: a.Action(o.read, o.run),
	}
}

type editOptions struct {
	ids   []int64
	edit  cli.Edit
	first bool
}

func (o *editOptions) read(c *cli.Context, a *cli.App) (err error) {
	words := c.Args().Slice()
	var command []string
	if i := slices.Index(words, "--"); i >= 0 {
		words, command = words[:i], words[i+1:]
		if len(command) == 0 {
			return ui.Usage("missing command after --").Hint("runner edit 1042 -- backup.sh --full")
		}
	}
	if o.ids, err = cli.ReadIDs(words); err != nil {
		return ui.Usage("%v", err).Hint("runner edit 1042 -- COMMAND")
	}

	switch {
	case len(o.ids) == 0:
		return ui.Usage("edit needs task ids").Hint("runner edit 1042 --priority 9")
	case !o.first:
		return o.edit.Read(c, a, command)
	case command != nil || !a.Alone(c, "first"):
		return ui.Usage("--first cannot be used with other changes").Hint("runner edit %d --first", o.ids[0])
	}

	return nil
}

func (o *editOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if o.first {
		first := cli.Bulk{Verb: "edit", Done: "moved to the front", Selection: cli.Selection{Filter: jobs.Filter{IDs: o.ids}}}
		return first.ChangeWaiting(ctx, r, p, func(ctx context.Context, ids []int64) ([]jobs.ActionResult, error) {
			return ui.PutFirst(ctx, r, ids)
		})
	}

	out := cli.NewOutcomes(p, "edit", "edited", o.ids)
	for _, id := range o.ids {
		if err := o.editTask(ctx, r, out, id); err != nil {
			return err
		}
	}

	return out.End()
}

// editTask edits one task and passes the result to out, which prints it.
func (o *editOptions) editTask(ctx context.Context, r *runner.Runner, out *cli.Outcomes, id int64) error {
	t, err := r.Get(ctx, id)
	if errors.Is(err, jobs.ErrNotFound) {
		out.Missing = append(out.Missing, id)
		return nil
	}
	if err != nil {
		return err
	}

	changes, err := o.edit.Prepare(t)
	if err != nil {
		return err
	}

	done, refused := db.Of(r).Edit(ctx, id, db.CurrentUser(), time.Now(), changes)
	db.Of(r).Notify()
	switch {
	case errors.Is(refused, jobs.ErrNotFound):
		out.Missing = append(out.Missing, id)
		return nil
	case refused != nil && !errors.Is(refused, jobs.ErrInvalid) && !errors.Is(refused, jobs.ErrConflict):
		return refused
	}
	if t, err = r.Get(ctx, id); err != nil && !errors.Is(err, jobs.ErrNotFound) {
		return err
	}

	t.ID = id // if it was deleted meanwhile, t is empty
	switch why := cli.WhyNotWaiting(done.State); {
	case refused == nil:
		out.Line(t, done.State, done.Text)
	case why != "" && errors.Is(refused, jobs.ErrConflict):
		out.Refuse(t, done.State, why)
	default:
		out.Refuse(t, done.State, ui.Explain(refused).What)
	}

	return nil
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Bulk is a command that changes tasks, and the tasks that the user selected.
type Bulk struct {
	Verb, Done string // the verb in two forms, such as "cancel" and "cancelled"
	Selection  Selection
	Group      string // key of a group of similar failed tasks, if only these are selected
	DryRun     bool
	yes        bool
}

// chunk is how many tasks change in one transaction. The lines of these tasks
// are printed before the next ones change.
const chunk = 500

// Options returns more and the options that all such commands have.
func (s *Bulk) Options(a *App, more ...Flag) []Flag {
	return append(append(more, s.Selection.Options(a)...),
		Bool(&s.DryRun, "dry-run", "list the selected tasks, and change nothing"),
		Bool(&s.yes, "yes y", "do not ask for confirmation"))
}

// Read reads which tasks are selected. A selector selects only tasks that the
// command can change.
func (s *Bulk) Read(c *Context, a *App) error {
	err := s.Selection.Read(c, a)
	if err == nil && s.Group == "" { // a group needs no other selector
		err = s.Selection.Require(s.Verb)
	}
	if err != nil {
		return err
	}
	return s.OnlyFitting()
}

// OnlyFitting limits the selection to tasks that the command can change.
func (s *Bulk) OnlyFitting() error {
	only, ok := search.Verb(s.Verb).Filter(s.Selection.Filter)
	if !ok {
		return ui.Usage("a selector finds no task in these states that can be %s", s.Done).Hint("runner %s 1042", s.Verb)
	}
	s.Selection.Filter = only
	return nil
}

// ids returns the selected tasks, newest first or in the order of the
// arguments. It asks for confirmation if necessary.
func (s *Bulk) ids(ctx context.Context, r *runner.Runner, p *ui.Printer) (ids []int64, err error) {
	f := s.Selection.Filter
	switch {
	case len(f.IDs) > 0:
		return f.IDs, nil
	case s.Group != "":
		ids, err = ui.FailureIDs(ctx, r, f, s.Group)
	default:
		ids, err = db.Of(r).IDs(ctx, f)
	}

	switch {
	case err != nil:
	case len(ids) == 0:
		p.Note("no tasks")
	case !s.DryRun:
		question := strings.ToUpper(s.Verb[:1]) + s.Verb[1:] + " " + tasksText(len(ids))
		if len(f.Queues) > 0 {
			question += " in " + strings.Join(f.Queues, ", ")
		}
		err = s.Selection.Confirm(p, s.yes, len(ids), question+"?")
	}

	return ids, err
}

// Change describes what a command does with the selected tasks.
type Change struct {
	Apply func(ctx context.Context, ids []int64) ([]jobs.ActionResult, error)
	// Print prints the result for a task. t is the changed task; it has only an
	// id if Apply has deleted it.
	Print func(out *Outcomes, result jobs.ActionResult, t jobs.Task)
	// After is called when all tasks are changed. It may be nil.
	After func(out *Outcomes) error
}

// Apply selects the tasks, asks for confirmation if necessary, changes the
// tasks and prints a line for each of them. With --dry-run it only prints them.
func (s *Bulk) Apply(ctx context.Context, r *runner.Runner, p *ui.Printer, change Change) error {
	ids, err := s.ids(ctx, r, p)
	if err != nil {
		return err
	}
	if s.DryRun {
		change = preview
	}

	out := NewOutcomes(p, s.Verb, s.Done, ids)
	for part := range slices.Chunk(ids, chunk) {
		if err := change.apply(ctx, r, out, part); err != nil {
			return err
		}
	}

	if change.After != nil {
		if err := change.After(out); err != nil {
			return err
		}
	}

	err = out.End()
	if s.DryRun && out.lines > 0 {
		p.Note("%s selected; nothing was changed", tasksText(out.lines))
	}

	return err
}

// apply changes the tasks with these ids, and prints them.
func (c *Change) apply(ctx context.Context, r *runner.Runner, out *Outcomes, ids []int64) error {
	results, err := c.Apply(ctx, ids)
	if err != nil {
		return err
	}

	changed := make([]int64, len(results)) // may have more than ids: the dependents of retried tasks
	for i, result := range results {
		changed[i] = result.ID
	}

	tasks, err := TasksByID(ctx, r, changed)
	if err != nil {
		return err
	}

	for _, result := range results {
		t, exists := tasks[result.ID]
		t.ID = result.ID
		if exists || result.Done && out.verb == "delete" {
			c.Print(out, result, t)
		} else {
			out.Missing = append(out.Missing, t.ID)
		}
	}

	return nil
}

// preview is --dry-run: it prints the selected tasks and changes nothing.
var preview = Change{
	Apply: func(_ context.Context, ids []int64) ([]jobs.ActionResult, error) {
		results := make([]jobs.ActionResult, len(ids))
		for i, id := range ids {
			results[i].ID = id
		}
		return results, nil
	},
	Print: func(out *Outcomes, _ jobs.ActionResult, t jobs.Task) { out.Line(t, t.State, ui.JobText(t)) },
}

// ChangeWaiting changes those of the selected tasks that wait.
func (s *Bulk) ChangeWaiting(ctx context.Context, r *runner.Runner, p *ui.Printer,
	apply func(ctx context.Context, ids []int64) ([]jobs.ActionResult, error)) error {
	return s.Apply(ctx, r, p, Change{
		Apply: apply,
		Print: func(out *Outcomes, result jobs.ActionResult, t jobs.Task) {
			switch {
			case !result.Done:
				out.Refuse(t, result.State, WhyNotWaiting(result.State))
			case !t.PausedAt.IsZero():
				out.Line(t, result.State, "paused")
			default:
				out.Line(t, result.State, fmt.Sprintf("priority %d", t.Priority))
			}
		},
	})
}

func TasksByID(ctx context.Context, r *runner.Runner, ids []int64) (map[int64]jobs.Task, error) {
	list, err := r.List(ctx, jobs.Filter{IDs: ids})
	tasks := make(map[int64]jobs.Task, len(list))
	for _, t := range list {
		tasks[t.ID] = t
	}
	return tasks, err
}

func tasksText(n int) string { return humanize.Plural(n, "task") }

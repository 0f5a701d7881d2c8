package bulk

import (
	"context"
	"slices"

	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Change describes what a command does with the selected tasks.
type Change struct {
	// Refusal returns why the command would not change a task, or an empty string if it would. Only --dry-run uses it.
	Refusal func(jobs.Task) string
	// Needed says which of the tasks stay because other tasks depend on them: see db.DB.NeededBy. Only --dry-run uses it; nil
	// means none.
	Needed func(ctx context.Context, ids []int64) (map[int64]int64, error)
	// Apply changes tasks.
	Apply func(ctx context.Context, ids []int64) ([]runner.ActionResult, error)
	// Print prints the result for a task. t is the changed task, and empty if Apply has deleted it.
	Print func(out *Outcomes, result runner.ActionResult, t jobs.Task)
	// After is called when all tasks are changed. It may be nil.
	After func(out *Outcomes) error
}

// Run selects the tasks, asks for confirmation if necessary, changes the tasks and prints a line for each of them. With --dry-run it only
// prints the tasks.
func (s *Action) Run(ctx context.Context, r *runner.Runner, p *term.Printer, change Change) error {
	ids, err := s.Tasks(ctx, r, p)
	if err != nil {
		return err
	}
	if s.DryRun {
		return s.Preview(ctx, r, p, ids, change)
	}
	out := NewOutcomes(p, s, ids)
	for part := range slices.Chunk(ids, BatchSize) {
		results, err := change.Apply(ctx, part)
		if err != nil {
			return err
		}
		changed := make([]int64, len(results)) // may have more than part: the dependents of retried tasks
		for i, result := range results {
			changed[i] = result.ID
		}
		tasks, err := TasksByID(ctx, r, changed)
		if err != nil {
			return err
		}
		for _, result := range results {
			t, exists := tasks[result.ID]
			if !exists && !(result.Done && s.Verb == "delete") {
				out.Missing = append(out.Missing, result.ID)
				continue
			}
			change.Print(out, result, t)
		}
	}
	if change.After != nil {
		if err := change.After(out); err != nil {
			return err
		}
	}
	return out.End()
}

// ChangeWaiting changes those of the selected tasks that wait.
func (s *Action) ChangeWaiting(ctx context.Context, r *runner.Runner, p *term.Printer,
	apply func(ctx context.Context, ids []int64) ([]runner.ActionResult, error)) error {
	return s.Run(ctx, r, p, Change{
		Refusal: func(t jobs.Task) string { return WhyNotWaiting(t.State) },
		Apply:   apply,
		Print: func(out *Outcomes, result runner.ActionResult, t jobs.Task) {
			if why := WhyNotWaiting(result.State); !result.Done {
				out.Refuse(result.ID, string(result.State), why, s.Record(p, t))
			} else {
				out.Line(result.ID, string(result.State), Remark(t), s.Record(p, t))
			}
		},
	})
}

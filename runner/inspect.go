package runner

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Get returns a task, or jobs.ErrNotFound.
func (r *Runner) Get(ctx context.Context, id int64) (jobs.Task, error) {
	tasks, err := r.store.List(ctx, jobs.Filter{IDs: []int64{id}})
	if err != nil {
		return jobs.Task{}, err
	}
	if len(tasks) == 0 {
		return jobs.Task{}, db.NoTask(id)
	}
	return tasks[0], nil
}

// validSelection returns a *jobs.Error of kind jobs.ErrInvalid for a filter
// with an unknown state or a negative limit.
func validSelection(filter jobs.Filter) error {
	for _, state := range filter.States {
		if !slices.Contains(taskspec.AllStates(), state) {
			return &jobs.Error{Kind: jobs.ErrInvalid, Subject: string(state), What: fmt.Sprintf("unknown state %q of a task", state),
				Hint: "one of the constants of jobs.State"}
		}
	}

	if filter.Limit < 0 {
		return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("limit %d of a filter is negative", filter.Limit),
			Hint: "0 for all tasks"}
	}
	return nil
}

// List returns the tasks that a filter selects, newest first unless the
// filter says otherwise. The error is jobs.ErrInvalid for an unknown state or a
// negative limit.
func (r *Runner) List(ctx context.Context, filter jobs.Filter) ([]jobs.Task, error) {
	if err := validSelection(filter); err != nil {
		return nil, err
	}
	return r.store.List(ctx, filter)
}

// allPage is the number of tasks that All reads with one query.
const allPage = 500

// All iterates over the tasks that a filter selects, in the order of List. It
// reads them in pages of at most 500, so each task is as it was when its page
// was read. An error ends the iteration and is its last element: an error of
// the database, the cause of ctx, or jobs.ErrInvalid as in List.
func (r *Runner) All(ctx context.Context, filter jobs.Filter) iter.Seq2[jobs.Task, error] {
	return func(yield func(jobs.Task, error) bool) {
		if err := r.each(ctx, filter, func(task jobs.Task) bool { return yield(task, nil) }); err != nil {
			yield(jobs.Task{}, err)
		}
	}
}

// each calls visit for the selected tasks until it returns false.
func (r *Runner) each(ctx context.Context, filter jobs.Filter, visit func(jobs.Task) bool) error {
	if err := validSelection(filter); err != nil {
		return err
	}
	limited := filter.Limit > 0
	for left := filter.Limit; ; {
		filter.Limit = allPage
		if limited {
			filter.Limit = min(allPage, left)
		}

		tasks, err := r.store.List(ctx, filter)
		if err != nil {
			return err
		}

		for _, task := range tasks {
			if !visit(task) {
				return nil
			}
		}

		if left -= len(tasks); len(tasks) < filter.Limit || left == 0 {
			return nil
		}

		if last := tasks[len(tasks)-1].ID; filter.OldestFirst {
			filter.After = last
		} else {
			filter.Before = last
		}
	}
}

// Count counts the tasks that a filter selects, in total and by state, all at
// the same moment. byState has no states without a task. Count may have to read
// each task. The error is jobs.ErrInvalid for an unknown state.
func (r *Runner) Count(ctx context.Context, filter jobs.Filter) (total int, byState map[jobs.State]int, err error) {
	if err := validSelection(filter); err != nil {
		return 0, nil, err
	}

	byState, err = r.store.CountByState(ctx, filter)
	for _, n := range byState {
		total += n
	}
	return total, byState, err
}

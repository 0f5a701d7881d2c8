package runner

import (
	"context"
	"fmt"
	"iter"

	"example.com/runner/db"
	"example.com/runner/internal/errcode"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// Page says how many entries of a list to return, and from which end.
type Page struct {
	Limit  int  // most entries; 0 for all
	Oldest bool // whether the oldest entry is the first; by default the newest is
}

// Get returns a task, or jobs.ErrNotFound.
func (r *Runner) Get(ctx context.Context, id int64) (jobs.Task, error) {
	tasks, err := r.store.List(ctx, jobs.Filter{IDs: []int64{id}}, db.Page{})
	if err != nil {
		return jobs.Task{}, err
	}
	if len(tasks) == 0 {
		return jobs.Task{}, notFound(id)
	}
	return tasks[0], nil
}

// Fence returns nil while the attempt of task id that has this generation owns the running task, and no cancel was requested. Otherwise the
// error is of kind jobs.ErrLost, jobs.ErrCancelled, or jobs.ErrNotFound for a deleted task. An attempt that gets an error must do nothing
// more. Fence is a check, not a lock: the task may belong to another worker a moment later.
func (r *Runner) Fence(ctx context.Context, id, generation int64) error {
	task, err := r.Get(ctx, id)
	if err != nil {
		return err
	}
	return lifecycle.CheckOwner(task, generation)
}

func notFound(id int64) error {
	return &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, Subject: fmt.Sprint(id), What: fmt.Sprintf("no task %d", id)}
}

// List returns the tasks that a filter selects, newest first unless the page says otherwise.
func (r *Runner) List(ctx context.Context, filter jobs.Filter, page Page) ([]jobs.Task, error) {
	return r.store.List(ctx, filter, db.Page(page))
}

// allPage is how many tasks All reads at once.
const allPage = 500

// All iterates over the tasks that a filter selects, in the order of List. During the iteration it reads one page of some hundred tasks
// after the other, so it yields each task as it was when its page was read. An error, of the database or of ctx, is the last element.
func (r *Runner) All(ctx context.Context, filter jobs.Filter, page Page) iter.Seq2[jobs.Task, error] {
	return func(yield func(jobs.Task, error) bool) {
		filter, left := filter, page.Limit
		for {
			part := db.Page{Limit: allPage, Oldest: page.Oldest}
			if page.Limit > 0 {
				part.Limit = min(allPage, left)
			}
			tasks, err := r.store.List(ctx, filter, part)
			if err != nil {
				yield(jobs.Task{}, err)
				return
			}
			for _, task := range tasks {
				if !yield(task, nil) {
					return
				}
			}
			if left -= len(tasks); len(tasks) < part.Limit || left == 0 {
				return
			}
			if last := tasks[len(tasks)-1].ID; page.Oldest {
				filter.After = last
			} else {
				filter.Before = last
			}
		}
	}
}

// IDs returns the ids of the tasks that a filter selects, in the order of List.
func (r *Runner) IDs(ctx context.Context, filter jobs.Filter, page Page) ([]int64, error) {
	return r.store.IDs(ctx, filter, db.Page(page))
}

// Count counts the tasks that a filter selects. It may look at each of them.
func (r *Runner) Count(ctx context.Context, filter jobs.Filter) (int, error) {
	return r.store.Count(ctx, filter)
}

// Attempts returns the attempts of a task, oldest first; the last of a running task is the one in progress, in state running.
func (r *Runner) Attempts(ctx context.Context, task jobs.Task) ([]jobs.Attempt, error) {
	attempts, err := r.store.Attempts(ctx, task.ID)
	if err == nil && task.State == jobs.Running {
		attempts = append(attempts, jobs.Attempt{TaskID: task.ID, GenerationID: task.GenerationID, Attempt: task.Attempt,
			State: jobs.Running, Counted: true, WorkerID: task.WorkerID, Worker: task.Worker, StartedAt: task.StartedAt,
			Duration: now().Sub(task.StartedAt)})
	}
	return attempts, err
}

// Output returns up to limit pieces of what an attempt has printed so far, in order, after piece seq (0: from the start).
func (r *Runner) Output(ctx context.Context, attempt jobs.Attempt, seq int64, limit int) ([]jobs.Chunk, error) {
	return r.store.Output(ctx, db.ClaimID{ID: attempt.TaskID, GenerationID: attempt.GenerationID}, seq, limit)
}

package runner

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

const (
	maxWatched = 10_000                 // how many tasks Watch watches
	watchPause = 100 * time.Millisecond // least pause after each read of Watch
	watchShare = 10                     // a pause is at least this many times as long as the read
	watchPage  = 100                    // number of changed tasks that Watch reads at once
)

// Watch iterates over the tasks that a filter selects, oldest first, and again
// over each of them when its state, attempt or Progress have changed:
//
//	for task, err := range r.Watch(ctx, jobs.Filter{IDs: ids}) {
//
// The iteration goes on until ctx ends, with the cause of ctx as the error of
// its last element, or until the loop is left. Other errors end it, too:
// jobs.ErrInvalid for an unknown state, and jobs.ErrReplaced if another file
// has replaced the database file.
//
// Watch sees the tasks of all processes. It reads after each commit, but at
// most ten times a second and for a tenth of the time, and otherwise once a
// second. It also waits for the body of the loop. The states that a task had
// between two reads are left out. A task that the filter no longer selects
// comes once more, as it is then. A task that was deleted comes as a Task that
// has only its ID. If the filter selects more than 10,000 tasks, Watch sees the
// newest 10,000 of them.
func (r *Runner) Watch(ctx context.Context, filter jobs.Filter) iter.Seq2[jobs.Task, error] {
	return func(yield func(jobs.Task, error) bool) {
		w := watch{r: r, filter: filter, seen: map[int64]db.Version{}, visit: func(task jobs.Task) bool { return yield(task, nil) }}
		err := validSelection(filter)
		w.filter.Limit = min(cmp.Or(filter.Limit, maxWatched), maxWatched)
		if err == nil {
			err = r.changes(ctx, func() (bool, error) {
				if left, err := w.look(ctx); left || err != nil {
					return left, err
				}
				return false, r.wait(ctx, nil, max(watchPause, watchShare*w.took))
			})
		}
		if err != nil {
			yield(jobs.Task{}, err)
		}
	}
}

// watch is a call of Runner.Watch.
type watch struct {
	r      *Runner
	filter jobs.Filter
	seen   map[int64]db.Version // the version that was visited last, by task
	visit  func(task jobs.Task) bool
	took   time.Duration // of the last read
}

// look visits the tasks that have changed. It reads the rows of these tasks
// only, because a row may have megabytes of arguments. It reports whether visit
// has returned false.
func (w *watch) look(ctx context.Context) (left bool, err error) {
	began := now()
	versions, err := w.r.store.Versions(ctx, w.filter)
	if err != nil {
		return false, err
	}
	w.took = now().Sub(began)

	gone := maps.Clone(w.seen)
	for _, v := range versions {
		delete(gone, v.ID)
	}
	if len(gone) > 0 {
		still, err := w.r.store.Versions(ctx, jobs.Filter{IDs: slices.Collect(maps.Keys(gone))})
		if err != nil {
			return false, err
		}
		versions = append(versions, still...)
	}

	var changed []int64
	deleted := maps.Clone(gone)
	for _, v := range versions {
		delete(deleted, v.ID)
		if w.seen[v.ID] != v {
			changed = append(changed, v.ID)
		}
	}

	slices.Sort(changed)
	for ids := range slices.Chunk(changed, watchPage) {
		tasks, err := w.r.store.List(ctx, jobs.Filter{IDs: ids, OldestFirst: true})
		if err != nil {
			return false, err
		}

		for _, t := range tasks {
			w.seen[t.ID] = db.VersionOf(&t)
			if !w.visit(t) {
				return true, nil
			}
		}
	}

	for id := range gone {
		delete(w.seen, id)
	}
	for _, id := range slices.Sorted(maps.Keys(deleted)) {
		if !w.visit(jobs.Task{ID: id}) {
			return true, nil
		}
	}

	return false, nil
}

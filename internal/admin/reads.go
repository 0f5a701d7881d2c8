package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// FailedBefore returns the ids of those tasks that have failed for good and
// were then retried. Their state tells only of the retry.
func FailedBefore(ctx context.Context, r *runner.Runner, list []jobs.Task) (map[int64]bool, error) {
	ids := make([]int64, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	return Store(r).FailedBefore(ctx, ids)
}

// ScheduleRuns returns the last n tasks of a schedule that weren't deleted,
// newest first.
func ScheduleRuns(ctx context.Context, r *runner.Runner, name string, n int) ([]jobs.Task, error) {
	ids, err := Store(r).Runs(ctx, name, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.List(ctx, jobs.Filter{IDs: ids}, runner.Page{})
}

// NextTicks returns the next n times at which a schedule adds tasks, as if it
// weren't paused; fewer if it has no more. The error is jobs.ErrInvalid for an
// invalid expression or time zone.
func NextTicks(s jobs.Schedule, n int) ([]time.Time, error) { return db.NextTicks(s, n) }

// Changes calls changed after commits of any process, but at most once in
// every. It returns when ctx ends, or with jobs.ErrReplaced. Runner.Changes
// detects commits earlier, but its work grows with the number of commits. This
// doesn't.
func Changes(ctx context.Context, r *runner.Runner, every time.Duration, changed func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	commits := make(chan struct{}, 1)
	if err := Store(r).Watch(ctx, every, func(bool) {
		select {
		case commits <- struct{}{}:
		default:
		}
	}); err != nil {
		return err
	}

	ticker := time.NewTicker(every)
	defer ticker.Stop()

	for next := commits; ; {
		select {
		case <-next:
			changed()
			next = nil
		case <-ticker.C:
			if err := Store(r).Replaced(); err != nil {
				return err
			}
			next = commits
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// OutputBefore returns at most limit pieces of an attempt's output that come
// just before piece seq, in order (math.MaxInt64: the last pieces). The attempt
// may still be running.
func OutputBefore(
	ctx context.Context, r *runner.Runner, attempt jobs.Attempt, seq int64, limit int,
) ([]jobs.Chunk, error) {
	claim := db.ClaimID{ID: attempt.TaskID, GenerationID: attempt.GenerationID}
	return Store(r).OutputBefore(ctx, claim, seq, limit)
}

// Restore puts a copy of a backup in the place of the database at path; see
// db.Restore.
func Restore(ctx context.Context, path, from string, unsafeFS bool, now time.Time) (db.Restored, error) {
	return db.Restore(ctx, path, from, db.Options{UnsafeFS: unsafeFS, BusyTimeout: 5 * time.Second}, now)
}

// Part says which part of a list to read, Sort how the list is sorted, and Mark
// is the place of a task in it.
type (
	Part = db.Part
	Sort = db.Sort
	Mark = db.Mark
)

// These are the orders of a list.
const (
	ByID  = db.ByID
	ByEnd = db.ByEnd
	ByDue = db.ByDue
)

// Failures returns at most n failed tasks that a filter selects, the latest
// failure first.
func Failures(ctx context.Context, r *runner.Runner, filter jobs.Filter, n int) ([]jobs.Task, error) {
	filter.States = []jobs.State{jobs.Failed}
	tasks, _, err := Store(r).ListPart(ctx, filter, db.Part{Sort: db.ByEnd, Limit: n})
	return tasks, err
}

package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/access"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// CountUpTo counts the tasks that a filter selects. It stops when the count reaches the number in most.
func CountUpTo(ctx context.Context, r *runner.Runner, filter jobs.Filter, most int) (int, error) {
	return store(r).CountUpTo(ctx, filter, most)
}

// PreviousRuns returns up to n earlier tasks that are similar to the given task and have started, the latest first. If the task has a
// schedule, the similar tasks are those of the same schedule. Otherwise they have the same function, label or command line, and they are
// among the last few thousand tasks.
func PreviousRuns(ctx context.Context, r *runner.Runner, task jobs.Task, n int) ([]jobs.Task, error) {
	ids, err := store(r).PreviousRuns(ctx, task, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.List(ctx, jobs.Filter{IDs: ids}, runner.Page{})
}

// ScheduleRuns returns the last n tasks of a schedule that have not been deleted, newest first.
func ScheduleRuns(ctx context.Context, r *runner.Runner, name string, n int) ([]jobs.Task, error) {
	ids, err := store(r).Runs(ctx, name, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.List(ctx, jobs.Filter{IDs: ids}, runner.Page{})
}

// NextTicks returns the next n ticks of a schedule, as if it were not paused, or fewer if it has no more. It returns jobs.ErrInvalid for an
// invalid expression or time zone.
func NextTicks(s jobs.Schedule, n int) ([]time.Time, error) { return access.NextTicks(s, n) }

// Changes calls the function changed after commits of any process. It calls the function at most once in the interval that every gives.
// It returns when ctx ends, or with jobs.ErrReplaced if the file was replaced. Runner.Changes detects commits earlier, but the cost of
// this function does not depend on the number of commits.
func Changes(ctx context.Context, r *runner.Runner, every time.Duration, changed func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	commits := make(chan struct{}, 1)
	if err := store(r).Watch(ctx, every, func(bool) {
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
			if err := store(r).Replaced(); err != nil {
				return err
			}
			next = commits
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Input returns the standard input of a task's command. It returns nil if there is none.
func Input(ctx context.Context, r *runner.Runner, id int64) ([]byte, error) {
	return store(r).Input(ctx, id)
}

// LastOutput returns the last pieces of output of an attempt in order, at most as many as limit. The attempt may still run.
func LastOutput(ctx context.Context, r *runner.Runner, attempt jobs.Attempt, limit int) ([]jobs.Chunk, error) {
	return store(r).LastOutput(ctx, db.ClaimID{ID: attempt.TaskID, GenerationID: attempt.GenerationID}, limit)
}

// OutputBefore returns the pieces of output of an attempt that come just before piece seq, in order, at most as many as limit.
func OutputBefore(ctx context.Context, r *runner.Runner, attempt jobs.Attempt, seq int64, limit int) ([]jobs.Chunk, error) {
	return store(r).OutputBefore(ctx, db.ClaimID{ID: attempt.TaskID, GenerationID: attempt.GenerationID}, seq, limit)
}

// HeadSize returns the number of bytes at the start of an attempt's output that a worker stores when the output has more than limit bytes.
func HeadSize(limit int64) int64 { return access.HeadSize(limit) }

// LastBackup returns the time of the last backup by runner, or the zero time if none was recorded.
func LastBackup(r *runner.Runner) time.Time { return store(r).LastBackup() }

// TimeOrder orders a list by a time, and says where the list begins.
type TimeOrder = db.TimeOrder

// TimeMark is the place of a task in a list that is ordered by time.
type TimeMark = db.TimeMark

// ListBounded returns the newest tasks that a filter selects, up to the number in limit. If no index serves the filter, it looks at no more
// tasks than the number in look. It then returns in rest the id of the last task at which it looked; a list of tasks before rest continues
// the search.
func ListBounded(ctx context.Context, r *runner.Runner, filter jobs.Filter, limit, look int) (tasks []jobs.Task, rest int64, err error) {
	return store(r).ListBounded(ctx, filter, limit, look)
}

// ListByTimeBounded returns the tasks that a filter selects in the order of a time: scheduled and retrying tasks by due time, the earliest
// first, or finished tasks by the time of their end, the latest first. Like ListBounded it may stop after the number of tasks in look.
func ListByTimeBounded(ctx context.Context, r *runner.Runner, filter jobs.Filter, o TimeOrder, look int) (tasks []jobs.Task,
	rest TimeMark, err error) {
	return store(r).ListByTimeBounded(ctx, filter, o, look)
}

// Failures returns up to most failed tasks that a filter selects, the latest failure first. It sets only the fields that identify a task
// and describe its failure.
func Failures(ctx context.Context, r *runner.Runner, filter jobs.Filter, most int) ([]jobs.Task, error) {
	return store(r).Failures(ctx, filter, most)
}

// FailureMarks returns the ends and the ids of the tasks that Failures returns for the same arguments. It reads no other fields, so it is
// ten times as fast.
func FailureMarks(ctx context.Context, r *runner.Runner, filter jobs.Filter, most int) ([]TimeMark, error) {
	return store(r).FailureMarks(ctx, filter, most)
}

// RecentNames returns the queues, jobs, labels and lanes of the newest tasks. It looks at no more tasks than the number in look.
func RecentNames(ctx context.Context, r *runner.Runner, look int) ([]db.RecentNames, error) {
	return store(r).RecentNames(ctx, look)
}

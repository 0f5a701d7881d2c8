package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// TimedOut is the cause of a context that ended at a wait's timeout.
type TimedOut struct{ After time.Duration }

func (g TimedOut) Error() string { return "gave up waiting after " + humanize.WriteDuration(g.After) }

// Limit returns a context that ends after a wait's timeout, if it isn't 0. The
// notes that say what the wait is for come before it, so even a short wait
// prints them.
func Limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, TimedOut{timeout})
}

// Stopped returns the error of a wait that a signal, --timeout or an error has
// ended. left is the number of unfinished tasks.
func Stopped(p *ui.Printer, err error, ids []int64, left int) error {
	goesOn := "; " + humanize.Does(left, "task", "goes on", "go on")
	if len(ids) == 1 {
		goesOn = fmt.Sprintf("; task %d goes on (runner cancel %[1]d)", ids[0])
	}

	signal, interrupted := errors.AsType[ui.Received](err)
	timeout, late := errors.AsType[TimedOut](err)
	var f *ui.Error
	switch {
	case interrupted:
		f = &ui.Error{Code: "interrupted", Exit: signal.Status(), What: "stopped waiting" + goesOn}
	case late:
		f = &ui.Error{Code: "timeout", Exit: StatusTimedOut, What: timeout.Error() + goesOn}
	default:
		return err
	}

	p.Tell("%s", f.What)
	f.Told = true
	return f
}

// Each waits until every task has finished or was deleted. It calls ended for
// each task, in the order in which the tasks end. A deleted task has an empty
// state. If ended returns more = false, Each returns at once. It calls polled
// each time it has read the tasks, unless all of them have ended. If ctx ends,
// Each returns the cause.
func Each(ctx context.Context, r *runner.Runner, ids []int64, polled func(),
	ended func(jobs.Task) (more bool, err error)) error {
	if len(ids) == 0 {
		return nil
	}

	left := slices.Clone(ids)
	return Changes(ctx, r, func() (bool, error) {
		tasks, err := readEnded(ctx, r, left)
		if err != nil {
			return false, err
		}

		reported := make(map[int64]bool, len(tasks))
		for _, t := range tasks {
			if more, err := ended(t); err != nil || !more {
				return true, err
			}
			reported[t.ID] = true
		}

		left = slices.DeleteFunc(left, func(id int64) bool { return reported[id] })
		if len(left) > 0 {
			polled()
		}

		return len(left) == 0, nil
	})
}

// readEnded returns the tasks that have finished, in the order of their ends,
// and then those that were deleted.
func readEnded(ctx context.Context, r *runner.Runner, ids []int64) (ended []jobs.Task, err error) {
	existing, err := db.Of(r).IDs(ctx, jobs.Filter{IDs: ids, OldestFirst: true})
	if err == nil && len(existing) > 0 { // a filter without ids selects all tasks
		ended, err = r.List(ctx, jobs.Filter{IDs: existing, States: taskspec.Finished()})
	}
	if err != nil {
		return nil, err
	}

	slices.SortFunc(ended, func(a, b jobs.Task) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), cmp.Compare(a.ID, b.ID))
	})

	for _, id := range ids {
		if _, found := slices.BinarySearch(existing, id); !found {
			ended = append(ended, jobs.Task{ID: id})
		}
	}

	return ended, nil
}

// These are the shortest and the longest pause between two polls.
const (
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// Changes calls poll at once, then after each commit of any process, and at
// least every two seconds, until it is done or fails. Between calls it pauses
// for four times as long as the last one took, from minPause to maxPause, so
// frequent commits don't cause many polls. If ctx ends, Changes returns its
// cause.
func Changes(ctx context.Context, r *runner.Runner, poll func() (done bool, err error)) error {
	var next time.Time // time before which poll must not be called again
	err := admin.Changes(ctx, r, func() (bool, error) {
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}

		began := time.Now()
		done, err := poll()
		now := time.Now()
		next = now.Add(min(max(4*now.Sub(began), minPause), maxPause))
		return done, err
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}

	return err
}

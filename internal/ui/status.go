package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Status is the state of a database and its workers at a moment.
type Status struct {
	Queues      []runner.Queue
	Holds       admin.Holds
	Workers     []runner.Worker // workers with a recent heartbeat
	Schedules   []jobs.Schedule
	Problems    []Problem
	Alive       int // number of workers that are not lost
	Busy, Slots int // busy slots, and all slots, of the workers that are not lost
	PausedTasks int // number of paused tasks; mostPaused if there are more
}

// mostPaused is the highest number of paused tasks that the status counts.
const mostPaused = 100_000

// ReadStatus reads the status from the database. If the parameter "only" is not nil, the status has only the queues that "only" names.
func ReadStatus(ctx context.Context, r *runner.Runner, now time.Time, only []string) (Status, error) {
	queues, err := r.Queues(ctx)
	if err != nil {
		return Status{}, err
	}
	if only != nil {
		queues = slices.DeleteFunc(queues, func(q runner.Queue) bool { return !slices.Contains(only, q.Queue) })
	}
	return StatusOf(ctx, r, now, queues, only)
}

// StatusOf is like ReadStatus, but the caller has already read the queues.
func StatusOf(ctx context.Context, r *runner.Runner, now time.Time, queues []runner.Queue, only []string) (s Status, err error) {
	s.Queues = queues
	if s.Holds, err = admin.ReadHolds(ctx, r); err != nil {
		return s, err
	}
	if s.Workers, err = r.Workers(ctx); err != nil {
		return s, err
	}
	if s.Schedules, err = r.Schedules(ctx); err != nil {
		return s, err
	}
	if s.PausedTasks, err = admin.Store(r).CountUpTo(ctx, jobs.Filter{Queues: only, Paused: true}, mostPaused); err != nil {
		return s, err
	}
	s.Alive, s.Busy, s.Slots = admin.LiveWorkers(s.Workers)
	f := finder{queues: s.Queues, pauses: s.Holds.Pauses, workers: s.Workers, schedules: s.Schedules, now: now, found: []Problem{}}
	f.all()
	err = f.read(ctx, r)
	s.Problems = sorted(f.found)
	if err != nil {
		return s, err
	}
	frozen, err := admin.Store(r).Frozen(ctx)
	if frozen != "" { // everything else is about a copy that nobody uses
		s.Problems = append([]Problem{{Code: "moved", Message: frozen, Try: "--db, with the other database"}}, s.Problems...)
	}
	return s, err
}

// ServedQueues returns the queues of a worker as text. The text is "all", or a list such as default,media=2 with the given separator.
func ServedQueues(w runner.Worker, separator string) string {
	names := make([]string, len(w.Queues))
	for i, q := range w.Queues {
		if names[i] = q.Queue; q.Max > 0 {
			names[i] += fmt.Sprintf("=%d", q.Max)
		}
	}
	return cmp.Or(strings.Join(names, separator), "all")
}

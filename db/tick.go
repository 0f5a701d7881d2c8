package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Ticked is the result of Tick for one schedule.
type Ticked struct {
	Schedule jobs.Schedule // schedule before the call of Tick
	Next     time.Time     // next tick; zero if there is none
	Added    []Tick        // enqueued tasks
	Skipped  int           // number of ticks skipped because an earlier task is unfinished
	Declined int           // number of ticks skipped by the function of the schedule (ErrSkipTick)
	Waiting  []int64       // running tasks that a new one is to replace; the ticks stay due until they have ended
	Err      error         // why the schedule can't tick; then Tick has not changed it
}

// Tick is one due time of a schedule, with its task.
type Tick struct {
	At     time.Time
	TaskID int64
}

// Tick enqueues the tasks of all schedules that are due. They are durable when
// it returns.
//
// plan returns the ticks of a schedule that get a task, and the next tick.
// prepare may change the Spec of each task; it may be nil. Both must be quick,
// and may be called twice for the same schedule. If prepare fails for one tick,
// no tick of that schedule gets a task, and the error is reported for the
// schedule. With ErrSkipTick only this tick gets none. With all, plan is also
// called for schedules without a due tick, and their next tick is set again.
//
// Each tick gets only one task, even if many workers call Tick: a worker reads
// the schedule, decides and sets next_at in one transaction. If a clock is set
// back, the unique index tasks_tick prevents a second task.
func (d *DB) Tick(ctx context.Context, now time.Time, all bool, plan func(jobs.Schedule) (ticks []time.Time, next time.Time, err error),
	prepare func(*jobs.Schedule, *jobs.Spec) error) ([]Ticked, error) {
	text, args := selectTicking, []any{now.UnixMilli()}
	if all {
		text, args = selectByName, nil
	}

	return updateAs(ctx, d, full, func(t *tx) (done []Ticked, err error) {
		var rows []scheduleRow
		if err := t.list(&rows, text, args...); err != nil {
			return nil, err
		}

		for i := range rows {
			s, err := rows[i].schedule()
			switch {
			case err != nil:
				done = append(done, Ticked{Schedule: s, Err: err})
				continue
			case !s.PausedAt.IsZero():
				continue
			}

			one, err := t.tick(s, now, plan, prepare)
			if err != nil {
				return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
			}

			done = append(done, one)
		}

		return done, nil
	})
}

func (t *tx) tick(s jobs.Schedule, now time.Time, plan func(jobs.Schedule) ([]time.Time, time.Time, error),
	prepare func(*jobs.Schedule, *jobs.Spec) error) (Ticked, error) {
	one := Ticked{Schedule: s}
	var due []time.Time
	due, one.Next, one.Err = plan(s)
	if one.Err != nil {
		return one, nil
	}

	due, err := t.withoutTask(s, due)
	if err != nil {
		return one, err
	}

	var open []openTask
	if len(due) > 0 && s.Overlap != jobs.OverlapAllow {
		if err := t.list(&open, selectOpen, s.Name); err != nil {
			return one, err
		}
	}
	if len(open) > 0 && s.Overlap == jobs.OverlapSkip {
		one.Skipped = len(due)
		due, open = nil, nil
	}

	var specs []jobs.Spec
	wanted := len(due)
	if specs, due, one.Err = tickSpecs(&s, due, prepare); one.Err != nil {
		return one, nil
	}
	if one.Declined = wanted - len(due); len(due) == 0 {
		open = nil // no task comes that would replace these
	}
	if one.Waiting, err = t.replaceOpen(&s, open, now); err != nil {
		return one, err
	}
	if len(one.Waiting) > 0 { // the new task comes only after these have ended
		one.Next = s.NextAt
		return one, nil
	}

	for i, at := range due {
		added, err := t.insertSpec(&specs[i], nil, now)
		if err != nil {
			return one, err
		}
		if err := t.noteTask(s.Name, added.ID, at); err != nil {
			return one, err
		}
		one.Added = append(one.Added, Tick{at, added.ID})
	}

	if one.Next.Equal(s.NextAt) && one.Skipped == 0 {
		return one, nil
	}

	err = t.run(moveTick, nullTime(one.Next), one.Skipped, s.Name)
	return one, err
}

type openTask struct {
	ID              int64   `db:"id"`
	CancelRequested boolean `db:"cancel_requested"`
}

// ErrSkipTick is the error of prepare for a tick that gets no task.
var ErrSkipTick = errors.New("the function of the schedule skips the tick")

// tickSpecs returns the Specs of the tasks for ticks of a schedule, and the
// ticks without those that prepare skips.
func tickSpecs(s *jobs.Schedule, ticks []time.Time, prepare func(*jobs.Schedule, *jobs.Spec) error) (specs []jobs.Spec,
	wanted []time.Time, err error) {
	for _, at := range ticks {
		spec := taskspec.TickSpec(s, at)
		if prepare != nil {
			bad := prepare(s, &spec)
			if bad == ErrSkipTick { //nolint:errorlint // the engine returns it unwrapped
				continue
			}
			err = cmp.Or(err, bad)
		}
		specs, wanted = append(specs, spec), append(wanted, at)
	}
	return specs, wanted, err
}

// replaceOpen cancels the unfinished tasks of a schedule, and returns those
// that still run.
func (t *tx) replaceOpen(s *jobs.Schedule, open []openTask, now time.Time) (waiting []int64, err error) {
	for _, task := range open {
		if task.CancelRequested {
			waiting = append(waiting, task.ID)
			continue
		}

		result, err := t.cancel(task.ID, "replaced by the next run of schedule "+s.Name, false, now)
		if err != nil {
			return nil, err
		}
		if !result.State.Finished() {
			waiting = append(waiting, task.ID)
		}
	}
	return waiting, nil
}

// withoutTask returns the ticks that have no task yet. A tick may already have
// a task if the clock was set back.
func (t *tx) withoutTask(s jobs.Schedule, ticks []time.Time) ([]time.Time, error) {
	var left []time.Time
	for _, at := range ticks {
		var n int
		if err := t.scan(hasTick, []any{s.Name, at.UnixMilli()}, &n); err != nil {
			return nil, err
		}
		if n == 0 {
			left = append(left, at)
		}
	}

	return left, nil
}

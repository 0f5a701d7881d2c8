package admin

import (
	"cmp"
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/internal/cron"
)

type (
	// Applied is what ApplySchedules did with one schedule: the schedule after
	// the change, or before its removal, and the change (Did).
	Applied = db.Applied
	// ApplyOptions are the options of ApplySchedules for schedules that exist
	// already: Keep refuses to change one (jobs.ErrConflict), Prune removes
	// those that are not in the list, and DryRun only reports the changes.
	ApplyOptions = db.ApplyOptions
	// ScheduleChange says what happened to a schedule.
	ScheduleChange = db.ScheduleChange
)

// The changes of a schedule.
const (
	ScheduleAdded     = db.ScheduleAdded
	ScheduleChanged   = db.ScheduleChanged
	ScheduleUnchanged = db.ScheduleUnchanged
	ScheduleRemoved   = db.ScheduleRemoved
)

// Schedules returns all schedules, sorted by name.
func Schedules(ctx context.Context, r *runner.Runner) ([]jobs.Schedule, error) {
	return db.Of(r).Schedules(ctx)
}

// Schedule returns a schedule, or jobs.ErrNotFound.
func Schedule(ctx context.Context, r *runner.Runner, name string) (jobs.Schedule, error) {
	return db.Of(r).Schedule(ctx, name)
}

// ApplySchedules adds, changes or keeps each schedule of a list. All changes
// are in one transaction. The results are in the order of the list, followed by
// the schedules that were removed. A new schedule with a PausedAt is paused.
// The error joins a *runner.SpecError of kind jobs.ErrInvalid for each invalid
// definition. With Keep it joins an error of kind jobs.ErrConflict for each
// existing schedule with another definition.
func ApplySchedules(ctx context.Context, r *runner.Runner, list []jobs.Schedule, o ApplyOptions) ([]Applied, error) {
	return db.InsideOf(r).ApplySchedules(ctx, list, o)
}

// RunSchedule enqueues a task of a schedule now, even if the schedule is paused
// or an earlier task is unfinished. It returns jobs.ErrNotFound if there is no
// such schedule, and jobs.ErrConflict if the schedule has OnTick and this
// Runner does not have its function.
func RunSchedule(ctx context.Context, r *runner.Runner, name string) (jobs.Task, error) {
	return db.InsideOf(r).RunSchedule(ctx, name)
}

// PauseSchedule pauses a schedule. A paused schedule enqueues no tasks at its
// ticks, and does not catch up on these ticks later. PauseSchedule is
// idempotent. It returns jobs.ErrNotFound if there is no such schedule.
func PauseSchedule(ctx context.Context, r *runner.Runner, name string) error {
	found, err := db.Of(r).PauseSchedule(ctx, name, db.CurrentUser(), now())
	return changed(r, name, found, err)
}

// ResumeSchedule ends the pause of a schedule. The next tick of the schedule is
// the first one after now. ResumeSchedule returns jobs.ErrNotFound if there is
// no such schedule.
func ResumeSchedule(ctx context.Context, r *runner.Runner, name string) error {
	at := now()
	found, err := db.Of(r).ResumeSchedule(ctx, name, func(s jobs.Schedule) time.Time {
		c, err := cron.Parse(s.Cron, cmp.Or(s.Zone, "UTC"))
		if err != nil { // this machine does not know the time zone, so make a tick due now: a worker then reports the error
			return at
		}
		return c.Next(at)
	}, at)
	return changed(r, name, found, err)
}

func changed(r *runner.Runner, name string, found bool, err error) error {
	if err == nil && !found {
		err = db.NoSchedule(name)
	}
	if err == nil {
		db.Of(r).Notify()
	}
	return err
}

// NextTicks returns the next n times at which a schedule adds tasks, as if it
// weren't paused. It returns fewer if the schedule has no more ticks, and
// jobs.ErrInvalid for an invalid expression or time zone.
func NextTicks(s jobs.Schedule, n int) ([]time.Time, error) {
	c, err := cron.Parse(s.Cron, cmp.Or(s.Zone, "UTC"))
	if err != nil {
		return nil, err
	}

	var list []time.Time
	next := s.NextAt
	if next.IsZero() {
		next = c.Next(now())
	}

	for ; len(list) < n && !next.IsZero(); next = c.Next(next) {
		list = append(list, next)
	}

	return list, nil
}

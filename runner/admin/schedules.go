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

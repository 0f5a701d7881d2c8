package db

import (
	"context"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A schedule with alert_after is late if no task has completed for too long
// (see taskspec.Late). The alert runs the hook on_failure of the schedule. The
// column alerted_at has the time of the last alert, so that each is raised
// once.

// selectAlerting reads the schedules that have alerts and are not paused.
// Index: schedules_alert.
var selectAlerting = query(selectSchedules + ` WHERE alert_after IS NOT NULL AND paused_at IS NULL ORDER BY schedules.name`)

// setLate sets the time [1] of the last alert of schedule [2], if it is still
// [3]. If it isn't, another worker has recorded the same alert.
var setLate = command(`UPDATE {schedules} SET alerted_at = ? WHERE name = ? AND coalesce(alerted_at, 0) = ?`)

// Alert finds the schedules that are late at the time now. If no worker has
// recorded an alert yet, Alert records it and enqueues its hook. It returns the
// schedules whose alert it has recorded.
func (w *Worker) Alert(ctx context.Context, now time.Time) (alerted []jobs.Schedule, err error) {
	rows, err := readRows[scheduleRow](ctx, w.db, selectAlerting)
	if err != nil {
		return nil, err
	}

	for i := range rows {
		s, err := rows[i].schedule()
		if err != nil {
			return alerted, err
		}
		if since, late := taskspec.Late(&s, now); !late || s.AlertedAt.After(since) {
			continue
		}

		recorded, err := w.alert(ctx, &s, int64(rows[i].AlertedAt), now)
		if err != nil {
			return alerted, err
		}
		if recorded {
			alerted = append(alerted, s)
		}
	}

	return alerted, nil
}

// alert records an alert, unless the time of the last alert is no longer was.
func (w *Worker) alert(ctx context.Context, s *jobs.Schedule, was int64, now time.Time) (bool, error) {
	return updateAs(ctx, w.db, full, func(t *tx) (bool, error) {
		t.hooks = w.hooks
		n, err := t.exec(setLate, now.UnixMilli(), s.Name, was)
		if err != nil || n == 0 {
			return false, err
		}

		hooks := taskspec.HooksWithDefaults(s.Spec.Hooks, t.hooks)
		if hooks.OnRecovery != "" {
			if err := t.run(openFailure, taskspec.SubjectOf(s.Name), now.UnixMilli()); err != nil {
				return true, err
			}
		}

		spec, ok := taskspec.AlertSpec(s, hooks, now)
		if ok {
			err = t.addHook(&spec, now)
		}

		return true, err
	})
}

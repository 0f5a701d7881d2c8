package db

import (
	"context"
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// There are two kinds of alert for a schedule with alert_after. The schedule is late if no task has completed for too long. It is slow if
// its last task runs for much longer than usual. Package lifecycle decides whether a schedule is late or slow. An alert runs the hook
// on_failure of the schedule. Two columns record the alerts, so that each is raised only once: alerted_at is the time of the last alert of
// a late schedule, and slow_task_id is the task that was too slow at the last alert of a slow schedule.

// selectAlerting reads the schedules that have alerts and are not paused. Index: schedules_alert.
var selectAlerting = query(selectSchedules + ` WHERE alert_after IS NOT NULL AND paused_at IS NULL ORDER BY schedules.name`)

// selectDurations lists the durations of the last [2] completed tasks of schedule [1], in ms. Index: tasks_tick.
var selectDurations = query(`SELECT finished_at - started_at FROM {tasks} WHERE schedule = ? AND tick IS NOT NULL AND state = 'completed'
	AND started_at IS NOT NULL ORDER BY tick DESC LIMIT 0 + ?`)

// setLate sets the time [1] of the last alert of schedule [2]. setSlow records that task [1] of schedule [2] has raised an alert. Each
// statement changes one column of the schedule. [3] is the value of this column that the caller has read. If the column has another value
// now, another worker has recorded the same alert, and the statement changes nothing.
var (
	setLate = command(`UPDATE {schedules} SET alerted_at = ? WHERE name = ? AND coalesce(alerted_at, 0) = ?`)
	setSlow = command(`UPDATE {schedules} SET slow_task_id = ? WHERE name = ? AND coalesce(slow_task_id, 0) = ?`)
)

// Alert is an alert of a schedule.
type Alert struct {
	Schedule jobs.Schedule
	Event    string // taskspec.EventLate or taskspec.EventSlow
}

// Alert finds the schedules that are late or slow at the time now. If no worker has recorded an alert yet, Alert records it and enqueues
// its hook. It returns the alerts that it has recorded.
func (w *Worker) Alert(ctx context.Context, now time.Time) (alerts []Alert, err error) {
	rows, err := readRows[scheduleRow](ctx, w.db, selectAlerting)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		s, err := w.db.withUsual(ctx, &rows[i])
		if err != nil {
			return alerts, err
		}
		since, late := lifecycle.Late(&s, now)
		if late && !s.AlertedAt.After(since) {
			alerts, err = w.alert(ctx, alerts, Alert{s, taskspec.EventLate}, now, setLate, now.UnixMilli(), int64(rows[i].AlertedAt))
			if err != nil {
				return alerts, err
			}
		}
		if slow := int64(rows[i].SlowTaskID); lifecycle.Slow(&s, now) && slow != s.LastTaskID {
			alerts, err = w.alert(ctx, alerts, Alert{s, taskspec.EventSlow}, now, setSlow, s.LastTaskID, slow)
			if err != nil {
				return alerts, err
			}
		}
	}
	return alerts, nil
}

// alert records one alert and appends it to the list. The parameter "record" is a statement that changes a column of the schedule from the
// value "was" to the value "is". If the column no longer has the value "was", another worker has recorded the same alert, and the function
// changes nothing.
func (w *Worker) alert(ctx context.Context, list []Alert, a Alert, now time.Time, record *statement, is, was int64) ([]Alert, error) {
	recorded, err := updateAs(ctx, w.db, full, func(t *tx) (bool, error) {
		t.hooks = w.hooks
		n, err := t.exec(record, is, a.Schedule.Name, was)
		if err != nil || n == 0 {
			return false, err
		}
		hooks := lifecycle.WithDefaults(a.Schedule.Spec.Hooks, t.hooks)
		if hooks.OnRecovery != "" && a.Event == taskspec.EventLate {
			if err := t.run(openFailure, lifecycle.SubjectOf(a.Schedule.Name), now.UnixMilli()); err != nil {
				return true, err
			}
		}
		spec, ok := lifecycle.AlertSpec(&a.Schedule, a.Event, hooks, now)
		if ok {
			err = t.addHook(&spec, now)
		}
		return true, err
	})
	if recorded && err == nil {
		list = append(list, a)
	}
	return list, err
}

// withUsual returns the schedule of row r. If the last task of the schedule is running, withUsual sets the field Usual.
func (d *DB) withUsual(ctx context.Context, r *scheduleRow) (jobs.Schedule, error) {
	s, err := r.schedule()
	if err != nil || s.LastState != jobs.Running {
		return s, err
	}
	ms, err := readRows[int64](ctx, d, selectDurations, s.Name, lifecycle.UsualRuns)
	durations := make([]time.Duration, len(ms))
	for i, n := range ms {
		durations[i] = number(n).duration()
	}
	s.Usual = lifecycle.Usual(durations)
	return s, err
}

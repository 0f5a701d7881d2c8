package db

import (
	"context"
	"time"
)

// After a clock was set back, the database holds times that are too far in the future. SetBack corrects these times. Retries, snoozes and
// rate limits wait for a duration. If the clock was ahead when such a wait began, the wait is too long by the error of the clock, which can
// be years. A task that waits for a time of day keeps that time, except if it was enqueued while the clock was more than a day ahead.

// setBackTasks shortens the wait of snoozed and retrying tasks whose last update lies in the future. From now on, each of these tasks waits
// for its original duration. The parameter [1] is the current time. The statement does not change the generation of a task. Index:
// tasks_due, from the current time on.
var setBackTasks = command(`UPDATE {tasks} SET run_at = ?1 + run_at - updated_at, updated_at = ?1
WHERE (state = 'scheduled' OR state = 'retrying') AND run_at > ?1 AND updated_at > ?1 AND started_at IS NOT NULL`)

// setBackNew shortens the wait of tasks that were created while the clock was more than a day ahead. The parameter [1] is the current time.
// The parameter [2] is a day later, and the statement changes the tasks that were created after [2]. From now on, each of these tasks waits
// for its original duration. The statement leaves out rows with times so large that the sum would overflow. Only plain SQL writes such
// rows. Index: tasks_due.
var setBackNew = command(`UPDATE {tasks} SET run_at = ?1 + run_at - created_at, expires_at = ?1 + expires_at - created_at, created_at = ?1,
	updated_at = ?1
WHERE state = 'scheduled' AND run_at > ?1 AND created_at > ?2 AND started_at IS NULL AND run_at < 4611686018427387904
	AND created_at < 4611686018427387904 AND coalesce(expires_at, 0) BETWEEN 0 AND 4611686018427387904`)

// setBackEnds sets the end of each task that ended later than [2] to the current time [1]. The parameter [2] is a day after the current
// time, so the clock was more than a day ahead when the task ended. Without the correction, the retention could delete the task years too
// late. setBackWorkers corrects the last heartbeats of workers in the same way.
var (
	setBackEnds    = command(`UPDATE {tasks} SET finished_at = ?1 WHERE finished_at > ?2`)
	setBackWorkers = command(`UPDATE {workers} SET beat_at = ?1 WHERE beat_at > ?2`)
)

// setBackKeys shortens the time for which unique keys are held by tasks that were
// created later than the current time [1]: from now on, each key is held for its
// original duration. setBackSchedules corrects the times from which the alerts of
// schedules count. Both tables are small.
var (
	setBackKeys = command(`UPDATE {unique_keys} SET free_at = ?1 + free_at - (SELECT created_at FROM {tasks} WHERE tasks.id = task_id)
WHERE free_at > ?1 AND EXISTS (SELECT 1 FROM {tasks} WHERE tasks.id = task_id AND created_at > ?1
	AND free_at - created_at = CAST(options ->> 'unique_for' AS bigint))`)
	setBackSchedules = command(`UPDATE {schedules} SET updated_at = CASE WHEN updated_at > ?1 THEN ?1 ELSE updated_at END,
	alerted_at = CASE WHEN alerted_at > ?1 THEN ?1 ELSE alerted_at END,
	kept_success = CASE WHEN kept_success > ?1 THEN ?1 ELSE kept_success END
WHERE updated_at > ?1 OR alerted_at > ?1 OR kept_success > ?1`)
)

// setBackLimits corrects the rate limits that were last updated later than the current time [1]. Their buckets fill from [1] on. If a lane
// waits for such a limit, the time at which its next task may start also becomes [1]. The statement reads the whole table, which is small.
var setBackLimits = command(`UPDATE {limits} SET filled_at = ?1, due_at = CASE WHEN due_at IS NOT NULL THEN ?1 END WHERE filled_at > ?1`)

// setBackPauses shortens the pauses of queues that began later than the current
// time [1]: from now on, each lasts for its original duration. The table is small.
var setBackPauses = command(`UPDATE {pauses} SET until_at = until_at - (paused_at - ?1), paused_at = ?1
WHERE until_at > ?1 AND paused_at > ?1 AND queue <> '` + DeletionPause + `'`)

// SetBack corrects stored times that are later than now because the clock was
// ahead: those of retries, snoozes, rate limits, unique keys with a holding time,
// pauses with an end and alerts. It corrects the times of new tasks, ended tasks and heartbeats if
// they are more than a day later than now. It returns the number of retries and
// snoozes that it has changed, and is idempotent.
func (d *DB) SetBack(ctx context.Context, now time.Time) (int64, error) {
	return updateAs(ctx, d, normal, func(t *tx) (int64, error) {
		for _, text := range []*statement{setBackKeys, setBackSchedules, setBackLimits, setBackPauses} {
			if err := t.run(text, now.UnixMilli()); err != nil {
				return 0, err
			}
		}
		for _, text := range []*statement{setBackNew, setBackEnds, setBackWorkers} {
			if err := t.run(text, now.UnixMilli(), now.Add(24*time.Hour).UnixMilli()); err != nil {
				return 0, err
			}
		}
		return t.exec(setBackTasks, now.UnixMilli())
	})
}

package db

import (
	"context"
	"time"
)

// After a clock was set back, the database holds times that are too far in the
// future. Retries, snoozes and rate limits wait for a duration, and that of a
// wait which began while the clock was ahead is wrong by its error, which can
// be years. A task that waits for a time of day keeps that time, unless it was
// enqueued while the clock was more than a day ahead.

// setBackTasks makes snoozed and retrying tasks whose last update lies after
// now, [1], wait for their original duration from now on. The generation stays.
// Index: tasks_due, from now on.
var setBackTasks = command(`UPDATE {tasks} SET run_at = ?1 + run_at - updated_at, updated_at = ?1
WHERE (state = 'scheduled' OR state = 'retrying') AND run_at > ?1 AND updated_at > ?1 AND started_at IS NOT NULL`)

// setBackNew does the same for tasks that were created after [2], a day after
// now, [1]. It leaves out times from plain SQL that are so large that the sum
// would overflow. Index: tasks_due.
var setBackNew = command(`UPDATE {tasks} SET run_at = ?1 + run_at - created_at, expires_at = ?1 + expires_at - created_at, created_at = ?1,
	updated_at = ?1
WHERE state = 'scheduled' AND run_at > ?1 AND created_at > ?2 AND started_at IS NULL AND run_at < 4611686018427387904
	AND created_at < 4611686018427387904 AND coalesce(expires_at, 0) BETWEEN 0 AND 4611686018427387904`)

// setBackEnds sets ends after [2], a day after now, to now, [1]: otherwise
// retention could delete the tasks years too late. setBackWorkers does the same
// for heartbeats.
var (
	setBackEnds    = command(`UPDATE {tasks} SET finished_at = ?1 WHERE finished_at > ?2`)
	setBackWorkers = command(`UPDATE {workers} SET beat_at = ?1 WHERE beat_at > ?2`)
)

// setBackKeys holds the unique keys of tasks that were created after now, [1],
// for their original duration from now on. setBackSchedules corrects the times
// from which alerts count. Both tables are small.
var (
	setBackKeys = command(`UPDATE {unique_keys} SET free_at = ?1 + free_at - (SELECT created_at FROM {tasks} WHERE tasks.id = task_id)
WHERE free_at > ?1 AND EXISTS (SELECT 1 FROM {tasks} WHERE tasks.id = task_id AND created_at > ?1
	AND free_at - created_at = CAST(options ->> 'unique_for' AS bigint))`)
	setBackSchedules = command(`UPDATE {schedules} SET updated_at = CASE WHEN updated_at > ?1 THEN ?1 ELSE updated_at END,
	alerted_at = CASE WHEN alerted_at > ?1 THEN ?1 ELSE alerted_at END,
	kept_success = CASE WHEN kept_success > ?1 THEN ?1 ELSE kept_success END
WHERE updated_at > ?1 OR alerted_at > ?1 OR kept_success > ?1`)
)

// setBackLimits fills the buckets of rates that were last updated after now,
// [1], from now on. A lane that waits for such a rate is looked at again now.
// The table is small.
var setBackLimits = command(`UPDATE {limits} SET filled_at = ?1, due_at = CASE WHEN due_at IS NOT NULL THEN ?1 END WHERE filled_at > ?1`)

// setBackPauses makes the pauses of queues that began after now, [1], last for
// their original duration from now on. The table is small.
var setBackPauses = command(`UPDATE {pauses} SET until_at = until_at - (paused_at - ?1), paused_at = ?1
WHERE until_at > ?1 AND paused_at > ?1 AND queue <> '` + DeletionPause + `'`)

// SetBack corrects stored times that are later than now because the clock was
// ahead: those of retries, snoozes, rates, unique keys with a holding time,
// pauses with an end and alerts; and those of new tasks, ended tasks and
// heartbeats if they are more than a day later. It returns how many retries and
// snoozes it has changed, and is idempotent.
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

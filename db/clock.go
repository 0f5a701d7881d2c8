package db

import (
	"context"
	"time"
)

// After a clock was set back, the database holds times that are too far in the future. A task that waits for a time of day keeps
// waiting for that time, unless it was enqueued while the clock was more than a day ahead. Retries, snoozes and rate limits are
// different: they wait for a duration. A clock that was ahead has added its error to their wait, which can be years. SetBack corrects
// these times.

// setBackTasks shortens the wait of snoozed and retrying tasks that were updated later than [1]: they wait for their original
// duration, from [1] on. It keeps the generation of each task, so its owner keeps its claim. Index: tasks_due, from [1] on. It runs
// only after a clock was set back.
var setBackTasks = command(`UPDATE {tasks} SET run_at = ?1 + run_at - updated_at, updated_at = ?1
WHERE (state = 'scheduled' OR state = 'retrying') AND run_at > ?1 AND updated_at > ?1 AND started_at IS NOT NULL`)

// setBackNew does the same for tasks that were created later than [2], by a clock that was more than a day ahead. They wait for their
// original duration, from [1] on. Index: tasks_due.
var setBackNew = command(`UPDATE {tasks} SET run_at = ?1 + run_at - created_at, expires_at = ?1 + expires_at - created_at, created_at = ?1,
	updated_at = ?1
WHERE state = 'scheduled' AND run_at > ?1 AND created_at > ?2 AND started_at IS NULL`)

// setBackEnds sets the end of tasks that ended later than [2] to [1]. Their clock was more than a day ahead, and they would be deleted
// years too late. setBackWorkers does the same for the last heartbeats of workers.
var (
	setBackEnds    = command(`UPDATE {tasks} SET finished_at = ?1 WHERE finished_at > ?2`)
	setBackWorkers = command(`UPDATE {workers} SET beat_at = ?1 WHERE beat_at > ?2`)
)

// setBackLimits makes rate limits count from [1], and makes lanes that wait for their rate due at [1]. It reads the whole table, which
// is small.
var setBackLimits = command(`UPDATE {limits} SET filled_at = ?1, due_at = CASE WHEN due_at IS NOT NULL THEN ?1 END WHERE filled_at > ?1`)

// SetBack corrects times later than now that a clock that was ahead has written: those of retries and snoozes, of new tasks, of rate
// limits, and of the deletion of old tasks. It returns how many retries and snoozes it has changed. It is idempotent.
func (d *DB) SetBack(ctx context.Context, now time.Time) (int64, error) {
	return updateAs(ctx, d, normal, func(t *tx) (int64, error) {
		for _, text := range []*statement{setBackNew, setBackEnds, setBackWorkers} {
			if err := t.run(text, now.UnixMilli(), now.Add(24*time.Hour).UnixMilli()); err != nil {
				return 0, err
			}
		}
		if err := t.run(setBackLimits, now.UnixMilli()); err != nil {
			return 0, err
		}
		return t.exec(setBackTasks, now.UnixMilli())
	})
}

package db

import (
	"context"
	"time"
)

// A clock that was set back leaves times in the file that lie further ahead than anybody meant. A task that waits for a time on the wall
// goes on to wait for it, unless it was enqueued by a clock that was more than a day ahead. Retries, snoozes and rates wait for a time from
// now: written by a clock that was ahead, they would wait for as long as it was ahead, and that may be years.

// setBackTasks lets tasks that put themselves off, and those that are to be tried again, wait from [1] for as long as they were to
// wait from a moment that is yet to come. Their generation stays: so do their owners. Index: tasks_due, from [1] on; it is run when
// a clock was set back.
var setBackTasks = command(`UPDATE {tasks} SET run_at = ?1 + run_at - updated_at, updated_at = ?1
WHERE (state = 'scheduled' OR state = 'retrying') AND run_at > ?1 AND updated_at > ?1 AND started_at IS NOT NULL`)

// setBackNew lets tasks that were enqueued after [2], by a clock which was more than a day ahead, wait from [1] for as long as they were
// to wait. Index: tasks_due.
var setBackNew = command(`UPDATE {tasks} SET run_at = ?1 + run_at - created_at, expires_at = ?1 + expires_at - created_at, created_at = ?1,
	updated_at = ?1
WHERE state = 'scheduled' AND run_at > ?1 AND created_at > ?2 AND started_at IS NULL`)

// setBackEnds gives the end [1] to tasks that ended after [2], by a clock which was more than a day ahead: else they would be deleted
// years late. setBackWorkers does the same for the last sign of life of workers.
var (
	setBackEnds    = command(`UPDATE {tasks} SET finished_at = ?1 WHERE finished_at > ?2`)
	setBackWorkers = command(`UPDATE {workers} SET beat_at = ?1 WHERE beat_at > ?2`)
)

// setBackLimits lets rates count from [1], and lanes that wait for theirs be looked at. Limits are few.
var setBackLimits = command(`UPDATE {limits} SET filled_at = ?1, due_at = CASE WHEN due_at IS NOT NULL THEN ?1 END WHERE filled_at > ?1`)

// SetBack puts right what times later than now, written by a clock that was ahead, would hold back: retries and snoozes, new tasks,
// the rates of limits, and the deletion of old tasks. It returns how many retries and snoozes it has moved. To repeat it changes nothing.
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

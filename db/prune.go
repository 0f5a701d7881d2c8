package db

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// This file implements retention: it deletes finished tasks and old workers,
// sums up counters, and returns free space to the filesystem. The worker
// decides which rows are old, and when: see
// runner/internal/engine/retention.go.

// needed holds for a finished task that an unfinished task depends on: that
// task will read its result, so the result must still be there. Indexes:
// dependencies_on, primary key.
const needed = `EXISTS (SELECT 1 ` + dependents + `)`

// dependents are the unfinished tasks that depend on a task.
const dependents = `FROM {dependencies} JOIN {tasks} AS dependent ON dependent.id = dependencies.task_id
	WHERE dependencies.on_id = tasks.id AND dependent.finished_at IS NULL`

// selectOld lists up to [3] completed or cancelled tasks that ended from [1] on
// and before [2], with their approximate size in bytes, and selectOldFailed
// such failed tasks. selectOldKept lists tasks with a retention of their own,
// and [1] and [2] are bounds for its end, which is their finished_at. All pass
// over tasks that are still needed. Indexes: tasks_finished, tasks_failed,
// tasks_kept.
var (
	selectOld       = query(`SELECT ` + oldColumns + ` AND state <> 'failed' AND {keep_for} IS NULL` + oldOrder)
	selectOldFailed = query(`SELECT ` + oldColumns + ` AND state = 'failed' AND {keep_for} IS NULL` + oldOrder)
	selectOldKept   = query(`SELECT id, ` + keptUntil + ` AS finished_at, ` + taskBytes + ` AS bytes FROM {tasks}
	WHERE finished_at IS NOT NULL AND {keep_for} IS NOT NULL AND ` + keptUntil + ` >= ? AND ` + keptUntil + ` < ?
	AND NOT ` + needed + ` ORDER BY ` + keptUntil + ` LIMIT 0 + ?`)
)

const keptUntil = `finished_at + {keep_for}`

const (
	oldColumns = `id, finished_at, ` + taskBytes + ` AS bytes FROM {tasks} WHERE finished_at >= ? AND finished_at < ?`
	oldOrder   = ` AND NOT ` + needed + ` ORDER BY finished_at LIMIT 0 + ?`
)

const taskBytes = `1000 + coalesce(length(args), 0) + coalesce(length(result), 0) +
	(SELECT coalesce(sum(length(data)), 0) FROM {output} WHERE task_id = tasks.id) + ` + inputBytes

// pruneTasks deletes the tasks in the JSON array [1] that are still finished
// and not needed, and whose end, or the end of whose own retention, was before
// [2]. It returns their ids and unique keys.
var pruneTasks = command(`DELETE FROM {tasks} WHERE id IN (SELECT CAST(value AS bigint) FROM {json_each})
	AND coalesce(` + keptUntil + `, finished_at) < ? AND NOT ` + needed + ` RETURNING id, unique_key`)

// pruneWorkers deletes workers without a running task whose last heartbeat was
// before [1].
var pruneWorkers = command(`DELETE FROM {workers} WHERE beat_at < ? AND NOT EXISTS (SELECT 1 FROM {tasks} WHERE worker = workers.number
	AND state = 'running')`)

// sumUpHours adds the counters of the minutes before [1] to those of their
// hours.
var (
	sumUpHours = command(`INSERT INTO {counter_hours} (queue, state, hour, n) SELECT queue, state, minute / 60, sum(n) FROM {counters}
	WHERE minute < ? GROUP BY queue, state, minute / 60
ON CONFLICT (queue, state, hour) DO UPDATE SET n = counter_hours.n + excluded.n`)
	deleteMinutes = command(`DELETE FROM {counters} WHERE minute < ?`)
	deleteHours   = command(`DELETE FROM {counter_hours} WHERE hour < ?`)
)

const (
	maxPruned      = 500     // tasks in one transaction, so that other writers don't wait long
	maxPrunedBytes = 8 << 20 // approximate size of the tasks in one transaction
)

type oldTask struct {
	ID         int64  `db:"id"`
	FinishedAt number `db:"finished_at"`
	Bytes      int64  `db:"bytes"`
}

// Prune says which finished tasks to delete.
type Prune struct {
	Failed bool      // whether to delete failed tasks; otherwise Prune deletes completed and cancelled ones
	Kept   bool      // whether to delete tasks with a retention of their own; the times are then those of its end
	From   time.Time // skip tasks that ended earlier: an earlier call has handled them
	Before time.Time // delete tasks that ended before this time
}

// Pruned is the result of one call of Prune.
type Pruned struct {
	Tasks int       // number of deleted tasks
	From  time.Time // for the next call, so that it skips what this one has checked
	More  bool      // whether more tasks are left for this worker to delete
}

// Prune deletes finished tasks with their rows in other tables, in one
// transaction of a limited size, so that other writers don't wait long. If
// another worker has just deleted all tasks that this call has selected, More
// is false: this worker leaves the rest to the other. When four workers deleted
// together, tasks ran half as fast as with one (bench/postgres -finished).
func (d *DB) Prune(ctx context.Context, p Prune) (Pruned, error) {
	text := selectOld
	switch {
	case p.Kept:
		text = selectOldKept
	case p.Failed:
		text = selectOldFailed
	}

	list, err := readRows[oldTask](ctx, d, text, max(p.From.UnixMilli(), 0), p.Before.UnixMilli(), maxPruned)
	if err != nil {
		return Pruned{From: p.From}, err
	}

	done := Pruned{From: p.Before, More: len(list) == maxPruned}
	if len(list) == 0 {
		return done, nil
	}

	n := len(list)
	if list = atMost(list, maxPrunedBytes); len(list) < n {
		done.More = true
	}
	if done.More {
		// More tasks may have ended in the same millisecond as the last of
		// these.
		done.From = list[len(list)-1].FinishedAt.time()
	}

	done.Tasks, err = d.pruneThese(ctx, list, p.Before)
	if err != nil && ctx.Err() == nil && len(list) > 1 {
		done.Tasks, err = d.pruneEach(ctx, list, p.Before)
	}

	done.More = done.More && done.Tasks > 0
	return done, err
}

// atMost returns the first tasks that have together at most so many bytes, but
// at least one.
func atMost(list []oldTask, bytes int64) []oldTask {
	for i := range list {
		if bytes -= list[i].Bytes; bytes < 0 && i > 0 {
			return list[:i]
		}
	}
	return list
}

// pruneEach deletes tasks in a transaction each, so that a row that cannot be
// deleted, such as one that plain SQL has damaged, does not keep the others. It
// returns the first error. If the first two tasks fail, the database is at
// fault and pruneEach gives up.
func (d *DB) pruneEach(ctx context.Context, list []oldTask, before time.Time) (deleted int, err error) {
	for i, task := range list {
		n, one := d.pruneThese(ctx, list[i:i+1], before)
		if deleted += n; one != nil {
			err = cmp.Or(err, fmt.Errorf("task %d: %w", task.ID, one))
			if deleted == 0 && i == 1 {
				break
			}
		}
	}
	return deleted, err
}

// pruneThese deletes those tasks of the list that ended before a given time in
// one transaction, and returns their number.
func (d *DB) pruneThese(ctx context.Context, list []oldTask, before time.Time) (int, error) {
	return updateAs(ctx, d, normal, func(t *tx) (int, error) { return t.prune(list, before.UnixMilli()) })
}

func (t *tx) prune(list []oldTask, before int64) (int, error) {
	ids := make([]int64, len(list))
	for i, task := range list {
		ids[i] = task.ID
	}

	var pruned []struct {
		ID        int64 `db:"id"`
		UniqueKey text  `db:"unique_key"`
	}
	if err := t.list(&pruned, pruneTasks, jsonText(ids), before); err != nil {
		return 0, err
	}

	ids = ids[:0]
	for _, task := range pruned {
		ids = append(ids, task.ID)
		if task.UniqueKey != "" {
			if err := t.run(keepUntil, string(task.UniqueKey), task.ID); err != nil {
				return 0, err
			}
		}
	}

	return len(ids), t.forget(ids)
}

// PruneWorkers deletes the workers without a running task whose last heartbeat
// was before a given time.
func (d *DB) PruneWorkers(ctx context.Context, before time.Time) error {
	return d.update(ctx, normal, func(t *tx) error { return t.run(pruneWorkers, before.UnixMilli()) })
}

// RollUp replaces the counters of single minutes from before minutes by
// counters of whole hours. It deletes the counters of hours, and the records of
// failures, from before hours.
func (d *DB) RollUp(ctx context.Context, minutes, hours time.Time) error {
	minute := minutes.Unix() / 3600 * 60 // all minutes of an hour or none
	return d.update(ctx, normal, func(t *tx) error {
		if err := t.run(sumUpHours, minute); err != nil {
			return err
		}
		if err := t.run(deleteMinutes, minute); err != nil {
			return err
		}
		if err := t.run(pruneFailures, hours.UnixMilli()); err != nil {
			return err
		}
		return t.run(deleteHours, hours.Unix()/3600)
	})
}

// Vacuum gives some of the file's free pages back to the filesystem and reports
// whether more are left.
func (d *DB) Vacuum(ctx context.Context) (bool, error) {
	return updateAs(ctx, d, normal, func(t *tx) (bool, error) { return d.engine.Vacuum(t.ctx, t.w.conn) })
}

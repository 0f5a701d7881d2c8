package db

import (
	"context"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A task holds its unique key until it finishes: by the index tasks_unique two
// unfinished tasks have different keys. A task that may hold its key for longer
// has a row in unique_keys, which outlives the task if retention deletes it
// before free_at. So an insert reads both tables.
//
// An insert runs under the write lock, so no other process takes the key
// meanwhile. Only plain SQL on a server inserts tasks without this lock. So
// there the trigger of the view for enqueue checks the key again after its
// insert, and insertTask adds no task if plain SQL has given the key to another
// unfinished task since the check.

// isHeld is an SQL condition: the row held of unique_keys still holds its key
// at the time in the next parameter. Its task is joined as holder.
const isHeld = `(held.free_at > ? OR held.states LIKE '%' || holder.state || '%')`

// selectHolder returns the unfinished task with key [1], or else the task that
// holds key [2] at time [3] by its row in unique_keys. Indexes: tasks_unique,
// unique_keys.
var selectHolder = query(`SELECT id FROM {tasks} WHERE unique_key = ? AND finished_at IS NULL
	UNION ALL SELECT held.task_id FROM {unique_keys} AS held LEFT JOIN {tasks} AS holder ON holder.id = held.task_id
	WHERE held.unique_key = ? AND ` + isHeld)

// holdKey stores how long task [2] holds key [1] after it has finished: at
// least until [3], and longer while it's in one of the states [4]. A later time
// of the same task stays. The row of another task is replaced, because that one
// no longer holds the key.
var holdKey = command(`INSERT INTO {unique_keys} (unique_key, task_id, free_at, states) VALUES (?, ?, ?, ?)
ON CONFLICT (unique_key) DO UPDATE SET task_id = excluded.task_id, states = excluded.states, free_at = CASE
	WHEN unique_keys.task_id = excluded.task_id THEN {greatest}(unique_keys.free_at, excluded.free_at) ELSE excluded.free_at END`)

// freeKey deletes the row of key [1] of task [2]. keepUntil is for a task that
// is deleted: from then on only the time in the row counts.
var (
	freeKey   = command(`DELETE FROM {unique_keys} WHERE unique_key = ? AND task_id = ?`)
	keepUntil = command(`UPDATE {unique_keys} SET states = '' WHERE unique_key = ? AND task_id = ?`)
)

// releaseKey takes key [2] from task [1] if it runs and no time holds the key
// at [3].
var releaseKey = command(`UPDATE {tasks} SET unique_key = NULL WHERE id = ?1 AND state = 'running'
	AND NOT EXISTS (SELECT 1 FROM {unique_keys} WHERE unique_keys.unique_key = ?2 AND free_at > ?3)`)

// pruneKeys deletes up to [2] keys that no task holds at time [1].
var pruneKeys = command(`DELETE FROM {unique_keys} WHERE unique_key IN (
	SELECT unique_key FROM {unique_keys} WHERE states = '' AND free_at <= ? ORDER BY free_at LIMIT 0 + ?)`)

// holder returns the task that holds a unique key, or 0.
func (t *tx) holder(key string, now time.Time) (id int64, err error) {
	err = t.scan(selectHolder, []any{key, key, now.UnixMilli()}, &id)
	return id, engine.NoRow(err)
}

// heldBy returns the task that keeps a new task from its unique key, or 0. A
// running task gives its key up to a task with the option UntilStart.
func (t *tx) heldBy(spec *jobs.Spec, key string, now time.Time) (int64, error) {
	if key == "" {
		return 0, nil
	}

	id, err := t.holder(key, now)
	if err != nil || id == 0 || !spec.Unique.UntilStart {
		return id, err
	}

	n, err := t.exec(releaseKey, id, key, now.UnixMilli())
	if n == 1 {
		id = 0
	}
	return id, err
}

// holdKey stores how long a task holds its unique key after it has finished:
// until Unique.For has passed since CreatedAt, or while it is in one of
// Unique.States. Without these options holdKey stores nothing. A replacement
// passes its own time, and not that of the old task, so that its caller can
// repeat it for the whole of Unique.For.
func (t *tx) holdKey(task *jobs.Task) error {
	if task.Unique.For <= 0 && len(task.Unique.States) == 0 {
		return nil
	}
	var at int64
	if task.Unique.For > 0 {
		at = task.CreatedAt.Add(task.Unique.For).UnixMilli()
	}
	return t.run(holdKey, task.UniqueKey, task.ID, at, (*taskspec.States)(&task.Unique.States).String())
}

// retakeKey writes the row of the unique key of a retried task again. Another
// task may have replaced it since.
func (t *tx) retakeKey(id int64) error {
	task, _, err := t.task(id) // the task exists, because this transaction has just changed it
	if err != nil {
		return err
	}
	return t.holdKey(&task)
}

// PruneKeys deletes keys that no task holds at the given time, and reports
// whether more are left.
func (d *DB) PruneKeys(ctx context.Context, now time.Time) (more bool, err error) {
	return updateAs(ctx, d, normal, func(t *tx) (bool, error) {
		n, err := t.exec(pruneKeys, now.UnixMilli(), maxPruned)
		return n == maxPruned, err
	})
}

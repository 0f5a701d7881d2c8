package db

import (
	"context"
	"time"

	"example.com/runner/jobs"
)

// The table finished is a list of ended tasks for consumers, which are calls of runner.OnFinished. A cursor stores how far a consumer has
// read the list. If the database has a cursor, the transaction that ends a task also adds the end to the list. Without a cursor it adds
// nothing.
//
// Invariants:
//   - The numbers of ends follow the order of their commits. The last number is stored in one row. A transaction takes numbers by changing
//     this row, while it holds the write lock. So a consumer that has read an end misses no end with a lower number. On a server, a
//     transaction of an application that takes numbers gets an error if its snapshot is older than the last change of this row.
//   - A cursor moves only after the consumer has handled the end. A consumer that dies in between gets the end again.
//   - At most one consumer owns a cursor. The owner has a lease. When the lease ends, another consumer can take over.
//   - The table keeps an end until all cursors have delivered it.

// takeSeqs takes the next [1] numbers for ended tasks, and returns the last of these numbers. insertFinished adds task [2] to the list of
// ended tasks; [1] is the number of the task in this list.
var (
	takeSeqs       = command(`UPDATE {finished_seq} SET seq = seq + ? RETURNING seq`)
	insertFinished = command(`INSERT INTO {finished} (seq, task_id, generation_id, job, queue, label, schedule, state, attempt, outcome,
	created_at, started_at, finished_at)
SELECT {bigint_param}, id, generation_id, job, queue, label, schedule, state, attempt, outcome, created_at, started_at, finished_at
	FROM {tasks} WHERE id = ? AND finished_at IS NOT NULL`)
)

// makeCursor adds cursor [1] at time [2], if it does not exist. The cursor delivers only tasks that end later. removeCursor deletes cursor
// [1].
var (
	makeCursor = command(`INSERT INTO {cursors} (name, seq, created_at) VALUES (?, (SELECT max(seq) FROM {finished_seq}), ?)
ON CONFLICT (name) DO NOTHING`)
	removeCursor = command(`DELETE FROM {cursors} WHERE name = ?`)
)

// selectCursor returns the owner of cursor [1], the time at which the lease of this owner expires, and whether the list has ended tasks
// that the cursor has not delivered.
var selectCursor = query(`SELECT coalesce(owner, ''), coalesce(lease_expires_at, 0),
	EXISTS (SELECT 1 FROM {finished} WHERE finished.seq > cursors.seq) FROM {cursors} WHERE name = ?`)

// takeCursor makes [1] the owner of cursor [2] until the time [3]. It changes nothing if another owner has a lease that is valid at the
// time [4]. A lease that ends after [5] does not count, because the clock of its owner was ahead. The statement returns the number of the
// last end that the cursor has delivered.
var takeCursor = command(`UPDATE {cursors} SET owner = ?1, lease_expires_at = ?3
WHERE name = ?2 AND (owner IS NULL OR owner = ?1 OR lease_expires_at <= ?4 OR lease_expires_at > ?5) RETURNING seq`)

// moveCursor records that owner [3] of cursor [2] has delivered the list of ended tasks up to the number [1].
// freeCursor ends the ownership of cursor [1] by owner [2].
var (
	moveCursor = command(`UPDATE {cursors} SET seq = ?1 WHERE name = ?2 AND owner = ?3`)
	freeCursor = command(`UPDATE {cursors} SET owner = NULL, lease_expires_at = NULL WHERE name = ? AND owner = ?`)
)

// trimFinished deletes an end from the list when every cursor has delivered this end. Without a cursor it deletes all ends.
var trimFinished = command(`DELETE FROM {finished} WHERE seq <= coalesce((SELECT min(seq) FROM {cursors}), 9223372036854775807)`)

// selectFinished lists at most [2] entries of the list of ended tasks: those with numbers above [1], in order.
var selectFinished = query(`SELECT seq, task_id AS id, generation_id, job, queue, label, schedule, state, attempt, outcome, created_at,
	started_at, finished_at, finished_at AS updated_at FROM {finished} WHERE seq > ? ORDER BY seq LIMIT 0 + ?`)

// selectCursors lists the cursors. For each cursor it counts the ends that are not delivered, and returns the time of the first of them.
var selectCursors = query(`SELECT name, (SELECT max(seq) FROM {finished_seq}) - seq AS behind,
	(SELECT finished_at FROM {finished} WHERE finished.seq > cursors.seq ORDER BY finished.seq LIMIT 1) AS since
FROM {cursors} ORDER BY name`)

// End describes how a task has ended.
type End struct {
	Seq  int64     // number of the end in the list
	Task jobs.Task // the task as it was when it ended, even if it was retried or deleted later
}

// recordEnds adds ended tasks to the list, in the given order.
func (t *tx) recordEnds(ids []int64) error {
	var last int64
	if err := t.scan(takeSeqs, []any{int64(len(ids))}, &last); err != nil {
		return err
	}
	for i, id := range ids {
		if err := t.pipeline(insertFinished, last-int64(len(ids)-1-i), id); err != nil {
			return err
		}
	}
	return nil
}

// MakeCursor adds a cursor if it does not exist. A new cursor delivers the tasks that end from now on.
func (d *DB) MakeCursor(ctx context.Context, name string, now time.Time) error {
	return d.update(ctx, full, func(t *tx) error { return t.run(makeCursor, name, now.UnixMilli()) })
}

// RemoveCursor deletes a cursor. It also trims the list of ended tasks: it deletes each task that all other cursors have delivered. It
// reports whether the cursor existed.
func (d *DB) RemoveCursor(ctx context.Context, name string) (bool, error) {
	return updateAs(ctx, d, full, func(t *tx) (bool, error) {
		n, err := t.exec(removeCursor, name)
		if err == nil {
			err = t.run(trimFinished)
		}
		return n > 0, err
	})
}

// CursorWaits reports whether the cursor has ends that owner can deliver at the time now. The error is sql.ErrNoRows if there is no such
// cursor.
func (d *DB) CursorWaits(ctx context.Context, name, owner string, now time.Time) (bool, error) {
	var current string
	var until number
	var some boolean
	err := d.read.QueryRowxContext(ctx, d.sql.Text(selectCursor), name).Scan(&current, &until, &some)
	free := current == "" || current == owner || !until.time().After(now) || until.time().After(now.Add(longestCursorLease))
	return err == nil && bool(some) && free, d.explainRead(ctx, err)
}

// longestCursorLease is longer than any lease that the owner of a cursor takes. A lease that ends after this time does not count,
// because the clock of the owner was ahead.
const longestCursorLease = 5 * time.Minute

// TakeCursor makes owner the owner of a cursor for the duration in the parameter "lease", and returns the number of the last end that the
// cursor has delivered. The error is sql.ErrNoRows if another owner has a lease, or if there is no such cursor.
func (d *DB) TakeCursor(ctx context.Context, name, owner string, lease time.Duration, now time.Time) (seq int64, err error) {
	err = d.update(ctx, normal, func(t *tx) error {
		t.wakeups = false
		return t.scan(takeCursor, []any{owner, name, now.Add(lease).UnixMilli(), now.UnixMilli(), now.Add(longestCursorLease).UnixMilli()},
			&seq)
	})
	return seq, err
}

// MoveCursor records that owner has delivered the ends up to seq. It returns jobs.ErrLost if owner does
// not own the cursor any more.
func (d *DB) MoveCursor(ctx context.Context, name, owner string, seq int64) error {
	return d.update(ctx, normal, func(t *tx) error {
		t.wakeups = false
		n, err := t.exec(moveCursor, seq, name, owner)
		if err == nil && n == 0 {
			err = jobs.ErrLost
		}
		if err == nil {
			err = t.run(trimFinished)
		}
		return err
	})
}

// FreeCursor ends the ownership of a cursor, so that another consumer can take it.
func (d *DB) FreeCursor(ctx context.Context, name, owner string) error {
	return d.update(ctx, normal, func(t *tx) error {
		t.wakeups = false
		return t.run(freeCursor, name, owner)
	})
}

// EndsAfter lists at most n entries of the list of ended tasks: those with numbers above seq, in order.
func (d *DB) EndsAfter(ctx context.Context, seq int64, n int) ([]End, error) {
	type endRow struct {
		Seq int64 `db:"seq"`
		row
	}
	rows, err := readRows[endRow](ctx, d, selectFinished, seq, n)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	now, err := d.ByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	ends := make([]End, len(rows))
	for i, r := range rows {
		t, kept := now[r.ID]
		if !kept {
			t = r.task()
		}
		if t.GenerationID != r.GenerationID { // the task was retried after it had ended
			t.GenerationID, t.State, t.Attempt, t.Result = r.GenerationID, jobs.State(r.State), r.Attempt, nil
			t.StartedAt, t.FinishedAt, t.UpdatedAt = r.StartedAt.time(), r.FinishedAt.time(), r.FinishedAt.time()
			t.WorkerID, t.Worker, t.LeaseExpiresAt, t.Progress = "", "", time.Time{}, nil
			r.Outcome.outcome(r.StartedAt, r.FinishedAt).fill(&t)
		}
		ends[i] = End{Seq: r.Seq, Task: t}
	}
	return ends, nil
}

// Cursor says how far a consumer has read the list of ended tasks.
type Cursor struct {
	Name   string
	Behind int       // number of ends that the cursor has not delivered
	Since  time.Time // time of the first end that is not delivered; zero if all are delivered
}

// Cursors lists the cursors by name.
func (d *DB) Cursors(ctx context.Context) ([]Cursor, error) {
	type row struct {
		Name   string `db:"name"`
		Behind int    `db:"behind"`
		Since  number `db:"since"`
	}
	return readAs(ctx, d, func(r *row) Cursor { return Cursor{Name: r.Name, Behind: r.Behind, Since: r.Since.time()} }, selectCursors)
}

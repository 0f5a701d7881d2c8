package db

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// The table finished is a list of ended tasks for consumers, which are calls of
// runner.ConsumeFinished. A cursor stores how far a consumer has read. With a
// cursor, the transaction that ends a task also adds the end to the list;
// without one it adds nothing.
//
// Invariants:
//   - The numbers of ends follow the order of their commits. The last number is
//     in one row, and a transaction takes numbers by changing this row while it
//     holds the write lock. So a consumer that has read an end misses none with
//     a lower number. On a server, a transaction of an application that takes
//     numbers gets an error if its snapshot is older than the last change of
//     this row.
//   - A cursor moves only after the consumer has handled the end. If the
//     consumer dies in between, the end is delivered again.
//   - At most one consumer owns a cursor, with a lease. When the lease ends,
//     another can take over.
//   - The table keeps an end until all cursors have delivered it.

// takeSeqs takes the next [1] numbers and returns the last of them.
// insertFinished adds task [2] to the list with the number [1].
var (
	takeSeqs       = command(`UPDATE {finished_seq} SET seq = seq + ? RETURNING seq`)
	insertFinished = command(`INSERT INTO {finished} (seq, task_id, generation_id, job, queue, label, schedule, state, attempt, outcome,
	created_at, started_at, finished_at)
SELECT {bigint_param}, id, generation_id, job, queue, label, schedule, state, attempt, outcome, created_at, started_at, finished_at
	FROM {tasks} WHERE id = ? AND finished_at IS NOT NULL`)
)

// makeCursor adds cursor [1] at time [2], unless it exists. It delivers only
// tasks that end later.
var (
	makeCursor = command(`INSERT INTO {cursors} (name, seq, created_at) VALUES (?, (SELECT max(seq) FROM {finished_seq}), ?)
ON CONFLICT (name) DO NOTHING`)
	removeCursor = command(`DELETE FROM {cursors} WHERE name = ?`)
)

// selectCursor returns the owner of cursor [1], the end of its lease, and
// whether the list has ends that are not delivered.
var selectCursor = query(`SELECT coalesce(owner, ''), coalesce(lease_expires_at, 0),
	EXISTS (SELECT 1 FROM {finished} WHERE finished.seq > cursors.seq) FROM {cursors} WHERE name = ?`)

// takeCursor makes [1] the owner of cursor [2] until [3], and returns the last
// delivered number, unless another owner has a lease that is valid at [4]. A
// lease that ends after [5] doesn't count, because the clock of its owner was
// ahead.
var takeCursor = command(`UPDATE {cursors} SET owner = ?1, lease_expires_at = ?3
WHERE name = ?2 AND (owner IS NULL OR owner = ?1 OR lease_expires_at <= ?4 OR lease_expires_at > ?5) RETURNING seq`)

// moveCursor records that owner [3] of cursor [2] has delivered the ends up to
// [1].
var (
	moveCursor = command(`UPDATE {cursors} SET seq = ?1 WHERE name = ?2 AND owner = ?3`)
	freeCursor = command(`UPDATE {cursors} SET owner = NULL, lease_expires_at = NULL WHERE name = ? AND owner = ?`)
)

// trimFinished deletes the ends that every cursor has delivered; without a
// cursor all.
var trimFinished = command(`DELETE FROM {finished} WHERE seq <= coalesce((SELECT min(seq) FROM {cursors}), 9223372036854775807)`)

// selectFinished lists up to [2] ends with numbers above [1], in order.
var selectFinished = query(`SELECT seq, task_id AS id, generation_id, job, queue, label, schedule, state, attempt, outcome, created_at,
	started_at, finished_at, finished_at AS updated_at FROM {finished} WHERE seq > ? ORDER BY seq LIMIT 0 + ?`)

// selectCursors counts, for each cursor, the ends that are not delivered, and
// returns the time of the first.
var selectCursors = query(`SELECT name, (SELECT max(seq) FROM {finished_seq}) - seq AS behind,
	(SELECT finished_at FROM {finished} WHERE finished.seq > cursors.seq ORDER BY finished.seq LIMIT 1) AS since
FROM {cursors} ORDER BY name`)

// End describes how a task has ended.
type End struct {
	Seq  int64     // number of the end in the list
	Task jobs.Task // the task as it was when it ended, even if it was retried or deleted later
}

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

// MakeCursor adds a cursor if it doesn't exist. A new one delivers the tasks
// that end from now on.
func (d *DB) MakeCursor(ctx context.Context, name string, now time.Time) error {
	return d.update(ctx, full, func(t *tx) error { return t.run(makeCursor, name, now.UnixMilli()) })
}

// RemoveCursor deletes a cursor, and the ends that all others have delivered.
// It reports whether the cursor existed.
func (d *DB) RemoveCursor(ctx context.Context, name string) (bool, error) {
	return updateAs(ctx, d, full, func(t *tx) (bool, error) {
		n, err := t.exec(removeCursor, name)
		if err == nil {
			err = t.run(trimFinished)
		}
		return n > 0, err
	})
}

// CursorWaits reports whether the cursor has ends that owner can deliver now.
// The error is sql.ErrNoRows if there is no such cursor.
func (d *DB) CursorWaits(ctx context.Context, name, owner string, now time.Time) (bool, error) {
	var current string
	var until number
	var some boolean
	err := d.read.QueryRowxContext(ctx, d.sql.Text(selectCursor), name).Scan(&current, &until, &some)
	free := current == "" || current == owner || !until.time().After(now) || until.time().After(now.Add(longestCursorLease))
	return err == nil && bool(some) && free, d.explainRead(ctx, err)
}

// longestCursorLease is longer than any lease that an owner takes. A lease that
// ends later doesn't count: the clock of its owner was ahead.
const longestCursorLease = 5 * time.Minute

// TakeCursor makes owner the owner of a cursor for the time lease, and returns
// the last delivered number. The error is sql.ErrNoRows if another owner has a
// lease, or if there is no such cursor.
func (d *DB) TakeCursor(ctx context.Context, name, owner string, lease time.Duration, now time.Time) (seq int64, err error) {
	err = d.update(ctx, normal, func(t *tx) error {
		t.wakeups = false
		return t.scan(takeCursor, []any{owner, name, now.Add(lease).UnixMilli(), now.UnixMilli(), now.Add(longestCursorLease).UnixMilli()},
			&seq)
	})
	return seq, err
}

// MoveCursor records that owner has delivered the ends up to seq. It returns
// jobs.ErrLost if owner has lost the cursor.
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

// FreeCursor lets another consumer take a cursor.
func (d *DB) FreeCursor(ctx context.Context, name, owner string) error {
	return d.update(ctx, normal, func(t *tx) error {
		t.wakeups = false
		return t.run(freeCursor, name, owner)
	})
}

// EndsAfter lists at most n ends with numbers above seq, in order.
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
	Behind int       // how many ends are not delivered
	Since  time.Time // time of the first of them; zero if there is none
}

// Cursors lists the cursors by name.
func (d *DB) Cursors(ctx context.Context) ([]Cursor, error) {
	type row struct {
		Cursor
		Since number
	}
	return readAs(ctx, d, func(r *row) Cursor { return Cursor{r.Name, r.Behind, r.Since.time()} }, selectCursors)
}

// NoCursor returns the error of a name that no cursor has.
func NoCursor(name string) error {
	return &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoCursor, Subject: name, What: fmt.Sprintf("no cursor %q", name)}
}

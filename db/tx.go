package db

import (
	"context"
	"database/sql"
	"fmt"
	"time"
	"weak"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/jobs"
)

// The functions of this file write in a transaction of the caller, on the
// caller's own handle to the same database. Their writes are committed together
// with the caller's others, or not at all. The caller decides about durability
// and lock timeouts, and ends the transaction.
//
// No statement here may be interrupted when a context ends: SQLite would roll
// back the caller's whole transaction, and each later statement would be
// committed by itself.

var selectTask = query(selectTasks + ` WHERE tasks.id = ?`)

// outerTx is a caller's transaction that joinTx has found to belong to this
// database, and what it may be used for.
type outerTx struct {
	tx  weak.Pointer[sql.Tx]
	use engine.Use
}

// joinTx returns a tx that runs in the caller's transaction, for use. It
// returns an error if that belongs to another database.
func (d *DB) joinTx(ctx context.Context, outer *sql.Tx, use engine.Use) (*tx, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if outer == nil {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "the transaction is nil", Hint: "begin it with the handle of the application"}
	}
	if d.options.ReadOnly && use != engine.Read {
		return nil, engine.ErrReadOnly(d.path, nil)
	}

	t := &tx{ctx: context.WithoutCancel(ctx), outer: &sqlx.Tx{Tx: outer, Mapper: d.read.Mapper}, db: d}
	now := outerTx{weak.Make(outer), use}
	if last := d.lastTx.Load(); last != nil && last.tx == now.tx && last.use >= use {
		return t, nil // an earlier call has made the checks below, which take half as long as an INSERT
	}
	if err := d.Replaced(); err != nil {
		return nil, err
	}
	if err := d.engine.Within(querier{t}, use); err != nil {
		return nil, err
	}

	d.lastTx.Store(&now)
	return t, nil
}

// querier implements engine.Querier for a transaction.
type querier struct{ t *tx }

func (q querier) Exec(s *statement, args ...any) (int64, error)    { return q.t.exec(s, args...) }
func (q querier) Later(s *statement, args ...any) error            { return q.t.pipeline(s, args...) }
func (q querier) List(dest any, s *statement, args ...any) error   { return q.t.list(dest, s, args...) }
func (q querier) Scan(s *statement, args []any, dest ...any) error { return q.t.scan(s, args, dest...) }

// PathOf returns the path of the file that a handle has open. The handle must
// use the same driver as this package, because two copies of SQLite in one
// process break each other's locks.
func PathOf(ctx context.Context, handle *sql.DB) (string, error) {
	path, err := sqlite.PathOf(ctx, handle)
	return path, causeOf(ctx, err)
}

// OpenApplication opens a handle for an application that has tables of its own
// in the file at path; see runner.OpenDB. driver is as in Options.Driver.
func OpenApplication(ctx context.Context, path, driver string) (*sql.DB, error) {
	return sqlite.OpenApplication(ctx, path, driver)
}

// A savepoint of InsertAllTx, so that an error leaves nothing of the call in
// the caller's transaction.
var (
	savepoint     = command(`SAVEPOINT runner_add`)
	rollBackToIt  = command(`ROLLBACK TO SAVEPOINT runner_add`)
	freeSavepoint = command(`RELEASE SAVEPOINT runner_add`)
)

// InsertTx adds a task as part of the caller's transaction. The spec must be
// valid. After an error the caller has to roll back: there is no savepoint,
// which would cost a fifth of the time.
func (d *DB) InsertTx(ctx context.Context, outer *sql.Tx, spec *jobs.Spec, now time.Time) (jobs.Enqueued, error) {
	t, err := d.joinTx(ctx, outer, engine.Change)
	if err != nil {
		return jobs.Enqueued{}, err
	}
	added, err := t.insertSpec(spec, nil, now)
	if err != nil {
		return jobs.Enqueued{}, fmt.Errorf("enqueue: %w", d.refused(err))
	}
	return added, nil
}

// InsertAllTx adds tasks as part of the caller's transaction. The specs must be
// valid. After an error it has added none of them.
func (d *DB) InsertAllTx(ctx context.Context, outer *sql.Tx, specs []jobs.Spec, now time.Time) ([]jobs.Enqueued, error) {
	t, err := d.joinTx(ctx, outer, engine.Change)
	if err != nil {
		return nil, err
	}
	if err := t.run(savepoint); err != nil {
		return nil, fmt.Errorf("enqueue: %w", d.refused(err))
	}

	of, from, err := t.insertAll(specs, now)
	if err == nil {
		err = of.flush(false)
	}
	if err != nil {
		// After a failed rollback the transaction itself has ended, and nothing
		// of it remains.
		if undo := t.run(rollBackToIt); undo == nil {
			_ = t.run(freeSavepoint)
		}
		return nil, fmt.Errorf("enqueue: %w", d.refused(err))
	}

	return of.added[from:], t.run(freeSavepoint)
}

// TaskTx returns a task as the caller's transaction sees it, or false if there
// is none.
func (d *DB) TaskTx(ctx context.Context, outer *sql.Tx, id int64) (jobs.Task, bool, error) {
	t, err := d.joinTx(ctx, outer, engine.Read)
	if err != nil {
		return jobs.Task{}, false, err
	}
	return t.task(id)
}

func (t *tx) task(id int64) (jobs.Task, bool, error) {
	var rows []row
	if err := t.list(&rows, selectTask, id); err != nil {
		return jobs.Task{}, false, fmt.Errorf("read task %d: %w", id, t.db.explain(err))
	}
	if len(rows) == 0 {
		return jobs.Task{}, false, nil
	}
	return rows[0].task(), true, nil
}

// FinishTx ends an attempt as part of the caller's transaction. If it returns
// an error, it has rolled that transaction back. The error is jobs.ErrLost if
// the attempt no longer owns its task.
func (w *Worker) FinishTx(ctx context.Context, outer *sql.Tx, f Finish, now time.Time) error {
	t, err := w.db.joinTx(ctx, outer, engine.Finish)
	if err == nil {
		t.hooks = w.hooks
		var done []Finished
		if done, err = t.finish(w.number, []Finish{f}, separately, now); err == nil && done[0].Fenced {
			err = jobs.ErrLost
		}
	}
	if err != nil {
		if outer != nil {
			_ = outer.Rollback() // the transaction may have ended already
		}
		return fmt.Errorf("finish task %d: %w", f.Task.ID, w.db.explain(err))
	}

	return nil
}

// FinishedTx reports whether the attempt of a claim has completed its task by
// FinishTx at the given time, in a transaction that was committed.
func (w *Worker) FinishedTx(ctx context.Context, claim ClaimID, at time.Time) (bool, error) {
	is, err := readRows[boolean](ctx, w.db, selectCompleted, claim.ID, claim.GenerationID, w.number, at.UnixMilli())
	return len(is) == 1 && bool(is[0]), err
}

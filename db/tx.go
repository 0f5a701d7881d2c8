package db

import (
	"context"
	"database/sql"
	"fmt"
	"time"
	"weak"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// The functions of this file write in a transaction of the caller, on the caller's own handle to the same database. Their writes are
// committed with the caller's other writes, or not at all. The caller controls the durability, the lock timeouts and the end of the
// transaction.
//
// The end of a context must not interrupt a statement here. If a write is interrupted, SQLite rolls back the whole transaction, and each
// later statement would be committed by itself.

// selectTask reads task [1].
var selectTask = query(selectTasks + ` WHERE tasks.id = ?`)

// within returns a tx for a transaction of the caller. It returns an error if that is a transaction on another database.
func (d *DB) within(ctx context.Context, outer *sql.Tx) (*tx, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if outer == nil {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "the transaction is nil", Hint: "begin it with the handle of the application"}
	}
	t := &tx{ctx: context.WithoutCancel(ctx), outer: &sqlx.Tx{Tx: outer, Mapper: d.read.Mapper}, db: d}
	same := weak.Make(outer)
	if d.lastTx.Load() == same { // an earlier call has made the checks below, which take half as long as an INSERT
		return t, nil
	}
	if err := d.Replaced(); err != nil {
		return nil, err
	}
	if err := d.engine.Within(querier{t}); err != nil {
		return nil, err
	}
	d.lastTx.Store(same)
	return t, nil
}

// querier implements engine.Querier for a transaction.
type querier struct{ t *tx }

func (q querier) Exec(s *statement, args ...any) (int64, error)    { return q.t.exec(s, args...) }
func (q querier) Later(s *statement, args ...any) error            { return q.t.later(s, args...) }
func (q querier) List(dest any, s *statement, args ...any) error   { return q.t.list(dest, s, args...) }
func (q querier) Scan(s *statement, args []any, dest ...any) error { return q.t.scan(s, args, dest...) }

// PathOf returns the path of the file that a handle has open. The handle must use the same driver as this package, because two copies of
// SQLite in one process break each other's locks.
func PathOf(ctx context.Context, handle *sql.DB) (string, error) { return sqlite.PathOf(ctx, handle) }

// InsertTx adds a task as part of the caller's transaction, and returns the task as that transaction sees it. The spec must be valid.
func (d *DB) InsertTx(ctx context.Context, outer *sql.Tx, spec *jobs.Spec, now time.Time) (jobs.Task, error) {
	t, err := d.within(ctx, outer)
	if err != nil {
		return jobs.Task{}, err
	}
	added, err := t.insertSpec(spec, nil, now)
	if err != nil {
		return jobs.Task{}, fmt.Errorf("enqueue: %w", d.explain(err))
	}
	if !added.Kept && !added.Replaced && !lifecycle.Ordered(spec) {
		task := lifecycle.NewTask(spec, now)
		task.ID = added.ID
		if spec.Batch == jobs.NewBatch {
			task.Batch = task.ID
		}
		return task, nil
	}
	var rows []row
	if err := t.list(&rows, selectTask, added.ID); err != nil {
		return jobs.Task{}, fmt.Errorf("enqueue: %w", d.explain(err))
	}
	return rows[0].task(), nil // insertSpec has found or added the task in this transaction
}

// FinishTx ends an attempt as part of the caller's transaction. If it returns an error, it has rolled that transaction back. The error is
// jobs.ErrLost if the attempt no longer owns its task.
func (w *Worker) FinishTx(ctx context.Context, outer *sql.Tx, f Finish, now time.Time) error {
	t, err := w.db.within(ctx, outer)
	if err == nil {
		t.hooks = w.hooks
		var done []Finished
		if done, err = t.finish(w.number, []Finish{f}, false, now); err == nil && done[0].Fenced {
			err = jobs.ErrLost
		}
	}
	if err != nil {
		_ = outer.Rollback() // the transaction may have ended already
		return fmt.Errorf("finish task %d: %w", f.Task.ID, w.db.explain(err))
	}
	return nil
}

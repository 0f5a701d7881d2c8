package db

import (
	"context"
	"database/sql"
	"fmt"
	"time"
	"weak"

	"github.com/jmoiron/sqlx"

	"example.com/runner/jobs"
)

// The writes of this file are part of a transaction of the caller, on a handle of its own to the same file: they happen when it
// commits, with what else is in it, or not at all. The caller decides about its level, its waiting and its end.
//
// The end of a context must not reach a statement here: SQLite rolls back the whole transaction when one of its writes is
// interrupted, and what follows would commit alone.

// selectMain names the file of the main database of a connection.
var selectMain = query(`SELECT file FROM pragma_database_list WHERE name = 'main'`)

// selectTask reads task [1].
var selectTask = query(selectTasks + ` WHERE tasks.id = ?`)

// within makes a transaction of the caller's one of ours, after a look whether it is of the same file.
func (d *DB) within(ctx context.Context, outer *sql.Tx) (*tx, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := &tx{ctx: context.WithoutCancel(ctx), outer: &sqlx.Tx{Tx: outer, Mapper: d.read.Mapper}, db: d}
	same := weak.Make(outer)
	if d.lastTx.Load() == same { // looked at a moment ago: the look takes as long as half an INSERT
		return t, nil
	}
	if err := d.Replaced(); err != nil {
		return nil, err
	}
	if d.server != nil {
		if err := d.withinServer(t); err != nil {
			return nil, err
		}
		d.lastTx.Store(same)
		return t, nil
	}
	var file string
	if err := t.scan(selectMain, nil, &file); err != nil {
		return nil, explain(err, d.path)
	}
	if real, err := resolve(file); file != d.path && (err != nil || real != d.path) {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("the transaction is of another database: %q", file),
			Why: []string{"this one is " + d.path}, Hint: "begin it on a handle that was opened with this path"}
	}
	d.lastTx.Store(same)
	return t, nil
}

// InsertTx adds a task as part of the caller's transaction, and returns it as it is there. The spec must be valid.
func (d *DB) InsertTx(ctx context.Context, outer *sql.Tx, spec *jobs.Spec, now time.Time) (jobs.Task, error) {
	t, err := d.within(ctx, outer)
	if err != nil {
		return jobs.Task{}, err
	}
	added, err := t.insertSpec(spec, nil, now)
	if err != nil {
		return jobs.Task{}, fmt.Errorf("enqueue: %w", explain(err, d.path))
	}
	if !added.Kept && !added.Replaced && !spec.Ordered() {
		task := spec.Task(now)
		task.ID = added.ID
		return task, nil
	}
	var rows []row
	if err := t.list(&rows, selectTask, added.ID); err != nil {
		return jobs.Task{}, fmt.Errorf("enqueue: %w", explain(err, d.path))
	}
	return rows[0].task(), nil // the transaction has just seen it
}

// FinishTx ends an attempt as part of the caller's transaction. After an error it has rolled that back: jobs.ErrLost if the
// attempt no longer owns its task.
func (w *Worker) FinishTx(ctx context.Context, outer *sql.Tx, f Finish, now time.Time) error {
	t, err := w.db.within(ctx, outer)
	if err == nil {
		var done []Finished
		if done, err = t.finish(w.number, []Finish{f}, false, now); err == nil && done[0].Fenced {
			err = jobs.ErrLost
		}
	}
	if err != nil {
		_ = outer.Rollback() // it may be over already
		return fmt.Errorf("finish task %d: %w", f.Task.ID, explain(err, w.db.path))
	}
	return nil
}

package runner

import (
	"context"
	"database/sql"
	"slices"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// EnqueueTx adds a task as part of a transaction of the caller. The task exists
// when tx commits. Workers of all processes notice the commit without a further
// call. EnqueueTx returns the task as Enqueue does.
//
// The caller begins the transaction tx on its own handle to the same file, such
// as a handle of OpenDB. The handle must use the driver modernc.org/sqlite,
// because two copies of SQLite in one process break each other's locks.
// EnqueueTx rejects a transaction of another driver, and so does every other
// function with a parameter tx. For a database on a server, tx is a transaction
// of database/sql with the driver pgx.
//
// From EnqueueTx until the commit, tx holds the write lock, and every other
// writer waits. If the same goroutine calls Enqueue meanwhile instead of
// EnqueueTx, Enqueue waits for tx and then fails with jobs.ErrBusy. The pragmas
// of the handle decide whether the commit survives a power failure and how long
// a transaction waits for the lock.
//
// The end of ctx does not interrupt a call that has begun. The error is
// jobs.ErrInvalid for an invalid spec, for a nil tx or for a transaction of
// another file, and the cause of ctx if ctx has ended before the call. It is
// jobs.ErrBusy if tx cannot get the write lock. For the reasons that Enqueue
// documents it is jobs.ErrNotFound or jobs.ErrConflict. It can also be another
// error of the driver. After an error, roll tx back.
func (r *Runner) EnqueueTx(ctx context.Context, tx *sql.Tx, spec jobs.Spec) (jobs.Task, error) {
	if err := r.prepare(ctx, &spec); err != nil {
		return jobs.Task{}, err
	}
	at := now()
	added, err := r.store.InsertTx(ctx, tx, &spec, at)
	if err != nil {
		return jobs.Task{}, err
	}
	return enqueued(&spec, at, added, func(id int64) (jobs.Task, error) { return r.GetTx(context.WithoutCancel(ctx), tx, id) })
}

// EnqueueManyTx adds any number of tasks as part of a transaction of the
// caller, as EnqueueMany does. EnqueueTx documents the requirements of tx and
// the errors jobs.ErrInvalid, jobs.ErrNotFound, jobs.ErrConflict and
// jobs.ErrBusy.
func (r *Runner) EnqueueManyTx(ctx context.Context, tx *sql.Tx, specs ...jobs.Spec) ([]jobs.Enqueued, error) {
	specs = slices.Clone(specs)
	if err := r.prepareAll(ctx, specs); err != nil {
		return nil, err
	}
	return r.store.InsertAllTx(ctx, tx, specs, now())
}

// CancelTx cancels tasks as part of a transaction of the caller, as Cancel
// does. If a task runs, its worker stops it after the commit. If tx is rolled
// back, no task is cancelled. EnqueueTx documents the requirements of tx and
// the errors jobs.ErrInvalid and jobs.ErrBusy.
func (r *Runner) CancelTx(ctx context.Context, tx *sql.Tx, ids []int64, options CancelOptions) ([]jobs.ActionResult, error) {
	return r.store.ApplyTx(ctx, tx, ids, r.cancelAction(options))
}

// RetryTx makes finished tasks due again as part of a transaction of the
// caller, as Retry does. EnqueueTx documents the requirements of tx and the
// errors jobs.ErrInvalid and jobs.ErrBusy.
func (r *Runner) RetryTx(ctx context.Context, tx *sql.Tx, ids []int64, options RetryOptions) ([]jobs.ActionResult, error) {
	return r.retry(options, func(act db.Action) ([]jobs.ActionResult, error) { return r.store.ApplyTx(ctx, tx, ids, act) })
}

// GetTx returns a task as a transaction of the caller sees it, with the earlier
// changes of tx. In a file, tx does not see later changes by other
// transactions. On a server, the isolation level of tx decides. The error is
// jobs.ErrNotFound if there is no such task. For the reasons that EnqueueTx
// documents it is jobs.ErrInvalid or jobs.ErrBusy. GetTx does not take the
// write lock, so tx can be read-only.
func (r *Runner) GetTx(ctx context.Context, tx *sql.Tx, id int64) (jobs.Task, error) {
	task, found, err := r.store.TaskTx(ctx, tx, id)
	if err == nil && !found {
		err = db.NoTask(id)
	}
	return task, err
}

// FinishTx completes the task of the handler with the context ctx, as part of
// the transaction tx of the handler. So the effect of the handler and the
// completion are committed together or not at all, and the effect happens
// exactly once. FinishTx stores the result as JSON; nil means no result.
// Runner.EnqueueTx documents the requirements of tx.
//
// After FinishTx the handler commits tx and returns nil. The worker ignores a
// result that the handler returns. If the handler does not commit tx, the
// attempt fails even if the handler returns nil, and the next attempt follows
// as usual. Call FinishTx last, because every other writer waits until the
// commit.
//
// FinishTx rolls tx back before it returns an error, so that a later commit of
// tx fails, too. The error is jobs.ErrLost if the attempt does not own the task
// any more, such as after another worker has taken the task over. It is
// jobs.ErrInvalid outside of an attempt, for an invalid result, or for a
// transaction of another file. It can also be jobs.ErrBusy or an error of the
// driver.
func FinishTx(ctx context.Context, tx *sql.Tx, result any) error {
	return engine.FinishTx(ctx, tx, result)
}

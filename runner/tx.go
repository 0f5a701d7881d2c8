package runner

import (
	"context"
	"database/sql"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// EnqueueTx adds a task as part of a transaction of the caller. The task exists when tx commits. Workers of all processes notice the commit
// without a further call. EnqueueTx returns the task as Enqueue does.
//
// The transaction tx must belong to a handle of the caller to the same file. The handle must use the driver modernc.org/sqlite, because two
// copies of SQLite in one process break each other's locks. Open a handle for writes with _txlock=immediate and a busy timeout, because
// SQLite refuses a transaction that began by reading and writes after another transaction has written. The synchronous pragma of that
// handle decides whether the commit survives a power failure. From EnqueueTx until the commit, tx holds the write lock of the file, and
// every other writer waits.
//
// The error is jobs.ErrInvalid for an invalid spec or for a transaction of another file. It can also be jobs.ErrBusy or an error of the
// driver. After an error, roll tx back.
func (r *Runner) EnqueueTx(ctx context.Context, tx *sql.Tx, spec jobs.Spec) (jobs.Task, error) {
	if err := r.prepare(&spec); err != nil {
		return jobs.Task{}, err
	}
	return r.store.InsertTx(ctx, tx, &spec, now())
}

// FinishTx completes the task whose attempt runs with ctx as part of a transaction of its function. So the effect of the function and the
// completion are committed together or not at all, and the effect happens exactly once. FinishTx stores the result as JSON; nil means no
// result. Runner.EnqueueTx documents the requirements of tx.
//
// The function then commits tx and returns nil. The worker ignores a result that the function returns. If the function does not commit, the
// attempt fails even if the function returns nil, and the next attempt follows as usual. Call FinishTx last, because every other writer
// waits until the commit.
//
// FinishTx rolls tx back before it returns an error, so that a later commit of tx fails, too. The error is jobs.ErrLost if the task has a
// newer generation, because other workers have taken over its tasks. It is jobs.ErrInvalid outside of an attempt, for an invalid result, or
// for a transaction of another file. It can also be jobs.ErrBusy or an error of the driver.
func FinishTx(ctx context.Context, tx *sql.Tx, result any) error {
	return engine.FinishTx(ctx, tx, result)
}

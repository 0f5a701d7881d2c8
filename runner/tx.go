package runner

import (
	"context"
	"database/sql"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// EnqueueTx adds a task as part of a transaction of the caller. The task exists when tx commits. Workers of all processes notice the commit
// themselves. EnqueueTx returns the task as Enqueue does.
//
// tx must belong to a handle of the caller to the same file, with the driver modernc.org/sqlite: two copies of SQLite in one process break
// each other's locks. Open a handle for writes with _txlock=immediate and a busy timeout, because SQLite refuses a transaction that began
// by reading and writes after another transaction has written. The synchronous pragma of that handle decides whether the commit survives a
// power failure. From EnqueueTx until the commit the file's write lock is held, and every other writer waits.
//
// The error is jobs.ErrInvalid for an invalid spec or a transaction of another file, jobs.ErrBusy, or an error of the driver. After an
// error, roll back.
func (r *Runner) EnqueueTx(ctx context.Context, tx *sql.Tx, spec jobs.Spec) (jobs.Task, error) {
	if err := r.prepare(&spec); err != nil {
		return jobs.Task{}, err
	}
	return r.store.InsertTx(ctx, tx, &spec, now())
}

// FinishTx completes the task whose attempt runs with ctx as part of a transaction of its function. So the effect of the function and the
// completion are committed together or not at all: exactly once. result is marshalled to JSON; nil is no result. See Runner.EnqueueTx for
// tx.
//
// The function then commits tx and returns nil. A result that it returns is ignored. If it does not commit, the attempt has failed,
// whatever the function returns, and the next attempt follows as usual. Call FinishTx last, because every other writer waits until the
// commit.
//
// FinishTx rolls tx back before it returns an error, so that a commit fails, too. The error is jobs.ErrLost if the task belongs to a newer
// generation, because its worker was taken for dead. It is jobs.ErrInvalid outside of an attempt, for an invalid result, or for a
// transaction of another file. It can also be jobs.ErrBusy or an error of the driver.
func FinishTx(ctx context.Context, tx *sql.Tx, result any) error {
	return engine.FinishTx(ctx, tx, result)
}

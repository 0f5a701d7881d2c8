package runner

import (
	"context"
	"database/sql"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// EnqueueTx adds a task as part of a transaction of the caller: the task exists when tx commits, and never did when it is rolled back.
// Workers of all processes notice the commit as any other; there is nothing to call after it. It returns the task as Enqueue does.
//
// tx is of a handle of the caller's to the same file, made with the driver modernc.org/sqlite: two copies of SQLite in one process
// break each other's locks. A handle for writes is best opened with _txlock=immediate and a busy timeout, since SQLite refuses a
// transaction that began by reading and wants to write after someone else has. How far the commit goes is that handle's
// synchronous; until it, the file's write lock is held, and every other writer waits.
//
// Errors are jobs.ErrInvalid for a spec or a transaction of another file, jobs.ErrBusy, or the driver's; after one, roll back.
func (r *Runner) EnqueueTx(ctx context.Context, tx *sql.Tx, spec jobs.Spec) (jobs.Task, error) {
	if err := r.prepare(&spec); err != nil {
		return jobs.Task{}, err
	}
	return r.store.InsertTx(ctx, tx, &spec, now())
}

// FinishTx completes the task whose attempt runs with ctx as part of a transaction of its function, with result, which is marshalled
// to JSON, or without one if it is nil. Effect and completion are committed together or not at all: exactly once. For tx see
// Runner.EnqueueTx.
//
// The function commits tx and returns nil; a result that it returns is not looked at. If it does not commit, its attempt has failed,
// whatever it returns, and the next one comes as usual. After an error FinishTx has rolled tx back, so that a commit fails, too: it is
// jobs.ErrLost when the task belongs to a newer generation, because its worker was taken for dead; jobs.ErrInvalid outside of an
// attempt, or for a result that cannot be kept or a transaction of another file; jobs.ErrBusy, or the driver's. Call it last: until
// the commit every other writer waits.
func FinishTx(ctx context.Context, tx *sql.Tx, result any) error {
	return engine.FinishTx(ctx, tx, result)
}

package admin

import (
	"context"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Path returns the absolute path of the database file with symlinks resolved.
// For a database on a server it returns the address, without the password.
func Path(r *runner.Runner) string { return db.Of(r).Path() }

// Abort ends the current Work of r without a grace period. It kills the
// attempts, and their tasks go back to their queues. Work then returns
// jobs.ErrShutdown.
func Abort(r *runner.Runner) { db.InsideOf(r).Abort() }

// SetQueues replaces WorkOptions.Queues of the running Work: it adds and
// removes queues, and changes their maxima. nil stands for all queues, and an
// empty list for none. Tasks that Work has claimed already still run. Lists of
// workers show the new queues within a second. The error is jobs.ErrConflict if
// no Work runs, and jobs.ErrInvalid for an invalid list.
func SetQueues(r *runner.Runner, queues []jobs.QueueMax) error {
	return db.InsideOf(r).SetQueues(queues)
}

// Changes calls check at once, then after each commit of any process, and at
// least every second. It returns when check returns true or an error, or when
// ctx ends. The error is jobs.ErrReplaced if another file has replaced the
// database file, and jobs.ErrInvalid if check is nil.
func Changes(ctx context.Context, r *runner.Runner, check func() (done bool, err error)) error {
	return db.InsideOf(r).Changes(ctx, check)
}

// AddCursor stores a cursor of ConsumeFinished, which then begins with the
// first task that finishes after this call. The cursor is in the database when
// AddCursor returns, so a test can enqueue tasks at once. AddCursor does
// nothing if the cursor exists, so a program may call it at each start. The
// error is jobs.ErrInvalid for an invalid name. It can also be jobs.ErrBusy or
// the cause of ctx.
func AddCursor(ctx context.Context, r *runner.Runner, cursor string) error {
	if err := taskspec.ValidCursor(cursor); err != nil {
		return err
	}
	return db.Of(r).MakeCursor(ctx, cursor, now())
}

// RemoveCursor deletes a cursor of ConsumeFinished, and the records of finished
// tasks that only this cursor needs. A running ConsumeFinished with this cursor
// then returns jobs.ErrNotFound. RemoveCursor returns jobs.ErrNotFound if there
// is no such cursor.
func RemoveCursor(ctx context.Context, r *runner.Runner, cursor string) error {
	removed, err := db.Of(r).RemoveCursor(ctx, cursor)
	if err == nil && !removed {
		err = db.NoCursor(cursor)
	}
	db.Of(r).Notify()
	return err
}

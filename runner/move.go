package runner

import (
	"context"

	"example.com/runner/db"
)

// Carried is how many rows of a table a move has carried.
type Carried = db.Carried

// MoveResult is a move that is over.
type MoveResult struct {
	To     string    // where the tasks are now: see Path
	Before bool      // it was over before this call
	Rows   []Carried // of each table, the same number in both databases; nil: Before
}

// Move carries everything to the database at an address, a file or, with Options.Engine, a server: tasks under their ids with attempts, output,
// inputs, results, steps and dependencies; schedules, limits, pauses, and what was counted. That database is made if it is missing, and must
// hold no task, schedule, limit or pause. No worker may live on either, and no task run: else the error is jobs.ErrConflict, and nothing was
// changed.
//
// From its beginning on, every write to either database is refused with jobs.ErrConflict, whoever asks: so no task can run twice. When
// Move returns without error the tasks may run in the other database; this one stays as it is, for reading, and refuses for ever. A move that
// ended otherwise (its context, a kill, a server that went away) goes on when it is called again with the same databases, or is given up by
// UndoMove. told is called now and then with the number of tasks that have been carried by this call, and of all that it has to; nil: nobody.
func (r *Runner) Move(ctx context.Context, to string, told func(done, of int)) (MoveResult, error) {
	if err := r.store.MayMove(ctx, now()); err != nil {
		return MoveResult{}, err
	}
	there, err := Open(ctx, to, Options{BusyTimeout: r.options.BusyTimeout, UnsafeFS: r.options.UnsafeFS, Engine: r.options.Engine, Dir: r.options.Dir, Alone: true})
	if err != nil {
		return MoveResult{}, err
	}
	defer there.Close()
	moved := MoveResult{To: there.Path()}
	var move *db.Move
	if move, moved.Before, err = r.store.BeginMove(ctx, there.store, now()); err != nil || moved.Before {
		return moved, err
	}
	left, err := move.Left(ctx)
	if err != nil {
		return moved, err
	}
	for done := 0; ; {
		n, err := move.Step(ctx)
		if err != nil {
			return moved, err
		}
		if n == 0 {
			break
		}
		if done += n; told != nil {
			told(done, int(left))
		}
	}
	moved.Rows, err = move.End(ctx)
	return moved, err
}

// UndoMove gives up a move from this database that has not ended, which takes writes again. What has arrived in the other one is of no use:
// it refuses every write. After a move that has ended it returns jobs.ErrConflict, as the tasks run elsewhere.
func (r *Runner) UndoMove(ctx context.Context) error { return r.store.UndoMove(ctx) }

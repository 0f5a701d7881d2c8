package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/runner"
)

// MoveResult is a finished move.
type MoveResult struct {
	To     string          // path or address of the database that has the tasks now: see Runner.Path
	Before bool            // whether the move was finished before this call
	Rows   []db.TableCount // rows of each table, the same number in both databases; nil if Before
}

// Move copies everything to the database at an address: tasks under their ids with attempts, output, inputs, results, steps and
// dependencies; schedules, limits, pauses and counters. Move opens that database with options, and creates it if it is missing. It
// must hold no task, schedule, limit or pause. No worker may live on either database, and no task may run. Otherwise the error is
// jobs.ErrConflict, and nothing was changed.
//
// From the beginning of a move, every write to either database fails with jobs.ErrConflict, so no task can run twice. When Move
// returns without error the tasks may run in the other database. The source stays for reading, and refuses writes for ever. A move
// that was interrupted goes on when Move is called again with the same databases. UndoMove gives it up. progress is called with the
// number of tasks that this call has copied, and of all that it has to copy. It may be nil.
func Move(ctx context.Context, r *runner.Runner, to string, options runner.Options, progress func(done, of int)) (MoveResult, error) {
	if err := store(r).MayMigrate(ctx, time.Now()); err != nil {
		return MoveResult{}, err
	}
	options.MustExist, options.Alone = false, true
	there, err := runner.Open(ctx, to, options)
	if err != nil {
		return MoveResult{}, err
	}
	defer there.Close()
	moved := MoveResult{To: there.Path()}
	var move *db.Migration
	if move, moved.Before, err = store(r).BeginMigration(ctx, store(there), time.Now()); err != nil || moved.Before {
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
		if done += n; progress != nil {
			progress(done, int(left))
		}
	}
	moved.Rows, err = move.End(ctx)
	return moved, err
}

// UndoMove gives up a move from this database that has not ended. The database takes writes again. The destination of the move refuses
// writes for ever. After a finished move UndoMove returns jobs.ErrConflict, because the tasks may run in the other database.
func UndoMove(ctx context.Context, r *runner.Runner) error { return store(r).UndoMigration(ctx) }

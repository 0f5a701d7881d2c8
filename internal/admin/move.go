package admin

import (
	"context"
	"time"

	"example.com/runner/db/transfer"
	"example.com/runner/runner"
)

// MoveResult is the result of a finished move.
type MoveResult struct {
	To     string                // path or address of the database that the tasks were moved to; see Runner.Path
	Before bool                  // whether an earlier call has already finished the move
	Rows   []transfer.TableCount // number of rows of each table, which is the same in both databases; nil if Before is true
}

// Move copies all data to another database, the destination: tasks under their ids with attempts, output, inputs, results, steps and
// dependencies; schedules, limits, pauses and counters. The parameter "to" is the address of the destination. Move opens the destination
// with options and creates it if it is missing. The destination must hold no task, schedule, limit or pause. Neither database may have a
// live worker, and no task may run. Otherwise Move changes nothing and returns jobs.ErrConflict.
//
// From the beginning of a move, every write to either database fails with jobs.ErrConflict, so no task can run twice. When Move returns
// without error, tasks may run in the destination. The source stays readable and refuses writes for ever. To continue an interrupted
// move, call Move again with the same databases; to give it up, call UndoMove. Move calls progress with the number of tasks that it has
// copied and the total number of tasks to copy. The parameter "progress" may be nil.
func Move(ctx context.Context, r *runner.Runner, to string, options runner.Options, progress func(done, of int)) (MoveResult, error) {
	if err := transfer.Check(ctx, store(r), time.Now()); err != nil {
		return MoveResult{}, err
	}
	options.MustExist, options.Alone = false, true
	there, err := runner.Open(ctx, to, options)
	if err != nil {
		return MoveResult{}, err
	}
	defer there.Close()
	moved := MoveResult{To: there.Path()}
	var move *transfer.Migration
	if move, moved.Before, err = transfer.Begin(ctx, store(r), store(there), time.Now()); err != nil || moved.Before {
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

// UndoMove gives up an unfinished move from this database. Afterwards this database accepts writes again, and the destination refuses
// writes for ever. After a finished move UndoMove returns jobs.ErrConflict, because workers may already run tasks of the destination.
func UndoMove(ctx context.Context, r *runner.Runner) error { return transfer.Undo(ctx, store(r)) }

// Frozen says where a database was moved to, or from where a move to it has not
// ended. It's empty for other databases.
func Frozen(ctx context.Context, r *runner.Runner) (string, error) { return store(r).Frozen(ctx) }

package admin

import (
	"context"
	"time"

	"example.com/runner/db/transfer"
	"example.com/runner/runner"
)

// MoveResult is the result of a finished move.
type MoveResult struct {
	To     string                // where the tasks were moved to; see Runner.Path
	Before bool                  // whether an earlier call has already finished the move
	Rows   []transfer.TableCount // of each table, the same in both databases; nil if Before is true
}

// Move copies all data to the database at address to: tasks under their ids
// with attempts, output, inputs, results, steps and dependencies; schedules,
// limits, pauses and counters. It opens that database with options and creates
// it if it is missing. There must be no task, schedule, limit or pause in it.
// Neither database may have a live worker, and no task may run. Otherwise Move
// changes nothing and returns jobs.ErrConflict.
//
// When Move returns without error, tasks may run there. The source stays
// readable and refuses writes for ever. A move that fails or is killed leaves
// the source as it was, or complete: call Move again with the same databases.
// While it runs, other writes to the source wait or fail as busy. progress
// (which may be nil) gets the number of rows copied so far, and of all rows.
func Move(
	ctx context.Context, r *runner.Runner, to string, options runner.Options, progress func(done, of int),
) (MoveResult, error) {
	if err := transfer.Check(ctx, Store(r), time.Now()); err != nil {
		return MoveResult{}, err
	}

	options.MustExist, options.Alone = false, true
	there, err := runner.Open(ctx, to, options)
	if err != nil {
		return MoveResult{}, err
	}
	defer there.Close()

	rows, err := transfer.Move(ctx, Store(r), Store(there), time.Now(), progress)
	return MoveResult{To: there.Path(), Before: rows == nil, Rows: rows}, err
}

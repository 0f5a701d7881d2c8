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
// When Move returns without error, tasks may run in the destination. The source stays readable and refuses writes for ever. A move that
// fails or is killed leaves the source as it was, or complete: call Move again with the same databases. While it runs, other writes to the
// source wait or fail as busy. Move calls progress with the number of rows that it has copied and the total number. The parameter
// "progress" may be nil.
func Move(ctx context.Context, r *runner.Runner, to string, options runner.Options, progress func(done, of int)) (MoveResult, error) {
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

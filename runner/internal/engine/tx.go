package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"example.com/runner/db"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

var errNotCommitted = errors.New("the transaction of FinishTx was not committed")

// FinishTx completes a task within the transaction tx. It is the task whose attempt runs with ctx.
func FinishTx(ctx context.Context, tx *sql.Tx, result any) error {
	a := attemptFrom(ctx)
	if a == nil {
		_ = tx.Rollback()
		return fmt.Errorf("%w: FinishTx is for functions that are run by Work", jobs.ErrInvalid)
	}
	at := now()
	a.inTx.Store(at.UnixMilli()) // set before the first write, because a commit after that write ends the attempt
	f := db.Finish{Task: a.task, Progress: a.progress(),
		Outcome: lifecycle.Outcome{Started: a.task.StartedAt, Finished: at, Duration: max(at.Sub(a.task.StartedAt), 0)}}
	if result != nil {
		text, err := jobs.MarshalResult(result)
		if err != nil {
			_ = tx.Rollback()
			return fmt.Errorf("%w: %w", jobs.ErrInvalid, err)
		}
		f.Outcome.Result = text
	}
	if output := a.output.Load(); output != nil {
		f.Output = output.Rest()
		f.Output.Cut = db.Cut{} // the loop makes this cut when it writes the end of the attempt; a second cut would remove too much
		f.Outcome.OutputBytes, f.Outcome.OutputTruncated = output.Sizes()
	}
	a.txResult.Store(&f.Outcome.Result)
	return a.e.worker.FinishTx(ctx, tx, f, at)
}

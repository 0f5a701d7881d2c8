package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

var errNotCommitted = errors.New("the transaction of FinishTx was not committed")

// FinishTx completes the task of the handler with the context ctx, within the
// transaction tx.
func FinishTx(ctx context.Context, tx *sql.Tx, result any) error {
	a := attemptFrom(ctx)
	if a == nil {
		rollback(tx)
		return fmt.Errorf("%w: FinishTx is for functions that are run by Work", jobs.ErrInvalid)
	}

	a.txCalled.Store(true)
	// A later call gets a later time, so that the database does not take it for
	// a repetition of the earlier one.
	at := time.UnixMilli(max(now().UnixMilli(), a.inTx.Load()+1))
	f := db.Finish{Task: a.task, Progress: a.progress(),
		Outcome: taskspec.Outcome{Started: a.task.StartedAt, Finished: at, Duration: max(at.Sub(a.task.StartedAt), 0)}}
	if result != nil {
		text, err := usercode.MarshalResult(result)
		if err != nil {
			rollback(tx)
			return fmt.Errorf("%w: %w", jobs.ErrInvalid, err)
		}
		f.Outcome.Result = text
	}
	if output := a.output.Load(); output != nil {
		f.Output = output.Rest()
		f.Output.Cut = db.Cut{} // do not cut the stored output here: the loop does so later, and a second cut would delete too much
		f.Outcome.OutputBytes, f.Outcome.OutputTruncated = output.Sizes()
	}

	before, same := a.inTx.Load(), a.finishTx == tx
	a.inTx.Store(at.UnixMilli()) // before the commit, so that a heartbeat after the commit does not regard this attempt as lost
	err := a.e.worker.FinishTx(ctx, tx, f, at)
	if err == nil {
		a.finishTx = tx
		return nil
	}
	// tx is rolled back, so that heartbeats find out again whether the attempt
	// is lost.
	if same { // and with tx the earlier call in it
		before = 0
	} else {
		a.stopIfLost(err)
	}

	a.inTx.Store(before)
	return err
}

// rollback ends a transaction that failed. It ignores errors, because the
// transaction may have ended already.
func rollback(tx *sql.Tx) {
	if tx != nil {
		_ = tx.Rollback()
	}
}

package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"example.com/runner/db/pgdriver"
	"example.com/runner/jobs"
)

// Tx returns a handle of database/sql to a transaction of pgx, for
// runner.FinishTx, runner.StepTx and the methods of a Runner whose names end in
// Tx, such as EnqueueTx. Both handles stand for the same transaction: tx sees
// what these calls have written, and a commit of tx commits their changes.
//
// Call release when the handle is no longer needed, before or after the end of
// the transaction, such as by defer. It leaves the transaction as it is, so
// pgx.BeginFunc can commit it later.
//
// The transaction ends when either handle commits it or rolls it back. A
// FinishTx or StepTx that fails rolls the transaction back, so a later
// tx.Commit returns pgx.ErrTxClosed. Don't use both handles at the same time.
// If ctx ends while a Commit of the returned handle waits for the server,
// Commit returns. The end of ctx doesn't roll back the transaction.
//
// The error is jobs.ErrInvalid if tx is nil, or the cause of ctx if ctx has
// ended.
func Tx(ctx context.Context, tx pgx.Tx) (handle *sql.Tx, release func(), err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if tx == nil {
		return nil, nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "the transaction is nil", Hint: "begin it with pgx"}
	}
	return pgdriver.Tx(ctx, tx)
}

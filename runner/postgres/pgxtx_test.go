package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
)

// connect returns a connection of pgx to the database at the address, with a
// new table named effects.
func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), `CREATE TABLE effects (id BIGINT)`); err != nil {
		t.Fatal(err)
	}

	return conn
}

// inPgx begins a transaction of pgx, and calls do with its handle of pgx and
// its handle of database/sql. It releases that handle, and rolls the
// transaction back unless the function has ended it.
func inPgx(t *testing.T, conn *pgx.Conn, do func(native pgx.Tx, tx *sql.Tx)) {
	t.Helper()
	native, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	tx, release, err := postgres.Tx(t.Context(), native)
	if err != nil {
		t.Fatal(err)
	}

	do(native, tx)
	release()
	_, err = tx.Exec(`SELECT 1`)
	testkit.ErrorIs(t, err, sql.ErrTxDone)
	if err := native.Rollback(t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("rollback: got error %v, want none or pgx.ErrTxClosed", err)
	}
}

func TestBeginFuncOfPgxCommitsTask(t *testing.T) {
	at := pgkit.Address(t)
	r := open(t, at, runner.Options{})
	conn := connect(t, at)
	no := errors.New("no")
	signUp := func(name string, failure error) error {
		return pgx.BeginFunc(t.Context(), conn, func(native pgx.Tx) error {
			tx, release, err := postgres.Tx(t.Context(), native)
			if err != nil {
				return err
			}
			defer release()
			if _, err := native.Exec(t.Context(), `INSERT INTO effects VALUES (1)`); err != nil {
				return err
			}
			if _, err := r.EnqueueTx(t.Context(), tx, count.With(1, jobs.Label(name))); err != nil {
				return err
			}
			return failure
		})
	}
	testkit.NoError(t, signUp("kept", nil))
	testkit.ErrorIs(t, signUp("rolled back", no), no)
	testkit.Equal(t, "effects", countOf(t, conn, `SELECT count(*) FROM effects`), 1)
	list, err := r.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", len(list), 1)
	testkit.Equal(t, "label", list[0].Label, "kept")
}

func TestRollbackOfEitherHandleEndsTransactionOfPgx(t *testing.T) {
	at := pgkit.Address(t)
	r := open(t, at, runner.Options{})
	conn := connect(t, at)
	inPgx(t, conn, func(native pgx.Tx, tx *sql.Tx) {
		_, err := r.EnqueueTx(t.Context(), tx, count.With(1))
		testkit.NoError(t, err)
		testkit.NoError(t, tx.Rollback())
		testkit.ErrorIs(t, native.Commit(t.Context()), pgx.ErrTxClosed)
	})
	testkit.Equal(t, "tasks", countOf(t, conn, `SELECT count(*) FROM tasks`), 0)
}

func countOf(t *testing.T, conn *pgx.Conn, query string) (n int) {
	t.Helper()
	testkit.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestTransactionOfPgxHasAllCalls(t *testing.T) {
	at := pgkit.Address(t)
	r := open(t, at, runner.Options{})
	conn := connect(t, at)
	var ids []int64
	all := func(native pgx.Tx, tx *sql.Tx) {
		_, err := native.Exec(t.Context(), `INSERT INTO effects VALUES (1)`)
		testkit.NoError(t, err)
		task, err := r.EnqueueTx(t.Context(), tx, count.With(1, jobs.Lane("l"), jobs.Label("a label")))
		testkit.NoError(t, err)
		added, err := r.EnqueueManyTx(t.Context(), tx, count.With(2), count.With(3, jobs.Unique("k")), count.With(4, jobs.Unique("k")))
		testkit.NoError(t, err)
		testkit.Equal(t, "whether the second task of a key was kept", added[2].Kept, true)
		_, err = r.CancelTx(t.Context(), tx, []int64{added[0].ID}, runner.CancelOptions{})
		testkit.NoError(t, err)
		_, err = r.RetryTx(t.Context(), tx, []int64{added[0].ID}, runner.RetryOptions{})
		testkit.NoError(t, err)
		got, err := r.GetTx(t.Context(), tx, task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "label", got.Label, "a label")
		var seen int
		testkit.NoError(t, native.QueryRow(t.Context(), `SELECT count(*) FROM tasks`).Scan(&seen))
		testkit.Equal(t, "tasks that the native handle sees", seen, 3)
		testkit.NoError(t, tx.QueryRow(`SELECT count(*) FROM effects WHERE id = $1`, 1).Scan(&seen))
		testkit.Equal(t, "effects that the other handle sees", seen, 1)
		ids = []int64{task.ID, added[0].ID, added[1].ID}
	}
	inPgx(t, conn, all)
	testkit.Equal(t, "tasks after the rollback", countOf(t, conn, `SELECT count(*) FROM tasks`), 0)
	testkit.Equal(t, "effects after the rollback", countOf(t, conn, `SELECT count(*) FROM effects`), 0)
	inPgx(t, conn, func(native pgx.Tx, tx *sql.Tx) {
		all(native, tx)
		testkit.NoError(t, native.Commit(t.Context()))
	})
	inPgx(t, conn, func(_ pgx.Tx, tx *sql.Tx) {
		_, err := r.CancelTx(t.Context(), tx, ids[1:2], runner.CancelOptions{})
		testkit.NoError(t, err)
		testkit.NoError(t, tx.Commit()) // the handle of database/sql can commit the transaction, too
		_, _, err = postgres.Tx(t.Context(), nil)
		testkit.ErrorIs(t, err, jobs.ErrInvalid)
	})
	testkit.Equal(t, "effects after the commit", countOf(t, conn, `SELECT count(*) FROM effects`), 1)
	for i, want := range []jobs.State{jobs.Pending, jobs.Cancelled, jobs.Pending} {
		testkit.Equal(t, "state", runnerkit.Get(t, r, ids[i]).State, want)
	}
}

// TestErrorInTransactionOfPgxRollsItBack makes a step, a statement or an
// enqueue fail in a transaction of pgx. After a failed step or statement, pgx
// must not commit this transaction.
func TestErrorInTransactionOfPgxRollsItBack(t *testing.T) {
	at := pgkit.Address(t)
	r := open(t, at, runner.Options{})
	conn := connect(t, at)
	no := errors.New("no")
	calls := 0
	r.Register(count.Handler(func(ctx context.Context, n int) error {
		calls++
		inPgx(t, conn, func(native pgx.Tx, tx *sql.Tx) {
			got, err := runner.StepTx(ctx, tx, "effect", func(ctx context.Context) (int, error) {
				_, err := native.Exec(ctx, `INSERT INTO effects VALUES ($1)`, n)
				if calls == 1 {
					err = no
				}
				return 7, err
			})
			if calls == 1 {
				testkit.ErrorIs(t, err, no)
				testkit.ErrorIs(t, native.Commit(ctx), pgx.ErrTxClosed)
				return
			}
			testkit.NoError(t, err)
			testkit.Equal(t, "value of the step", got, 7)
			testkit.NoError(t, native.Commit(ctx))
		})
		if calls < 3 {
			return jobs.RetryIn(0, no)
		}
		inPgx(t, conn, func(native pgx.Tx, tx *sql.Tx) {
			testkit.NoError(t, runner.FinishTx(ctx, tx, nil))
			testkit.NoError(t, native.Commit(ctx))
		})
		return nil
	}))
	task := runnerkit.Enqueue(t, r, count.With(1))
	stop := work(t, r)
	done, err := r.Await(t.Context(), task.ID)
	stop()
	testkit.NoError(t, err)
	testkit.Equal(t, "state", done.State, jobs.Completed)
	testkit.Equal(t, "calls", calls, 3)
	testkit.Equal(t, "effects", countOf(t, conn, `SELECT count(*) FROM effects`), 1)
	inPgx(t, conn, func(native pgx.Tx, tx *sql.Tx) { // first case: a statement fails on the server
		_, err := tx.Exec(`INSERT INTO missing VALUES (1)`)
		testkit.ErrorContains(t, err, "missing")
		testkit.ErrorIs(t, native.Commit(t.Context()), pgx.ErrTxCommitRollback)
	})
	file := runnerkit.Open(t, runner.Options{})
	inPgx(t, conn, func(_ pgx.Tx, tx *sql.Tx) { // second case: the Runner uses an SQLite file
		_, err := file.EnqueueTx(t.Context(), tx, count.With(1))
		testkit.ErrorIs(t, err, jobs.ErrInvalid, "another driver")
	})
}

func TestContextOfTransactionOfPgx(t *testing.T) {
	cause := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, _, err := postgres.Tx(ctx, nil)
	testkit.ErrorIs(t, err, cause)
}

package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// sqliteBusy is the primary result code SQLITE_BUSY.
const sqliteBusy = 5

// opened returns a handle of OpenDB to the file at path.
func opened(t testing.TB, path string) *sql.DB {
	t.Helper()
	handle, err := runner.OpenDB(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handle.Close() })
	return handle
}

// readThenWrite adds 1 to the only number in the table "numbers". Its
// transaction first reads the number, then calls the function "between", and
// then writes the number.
func readThenWrite(ctx context.Context, handle *sql.DB, between func()) error {
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT n FROM numbers`).Scan(&n); err != nil {
		return err
	}
	between()
	if _, err := tx.ExecContext(ctx, `UPDATE numbers SET n = ?`, n+1); err != nil {
		return err
	}
	return tx.Commit()
}

// TestTransactionOfOpenDBIsNeverRefusedBecauseItHasRead enqueues a task between
// the read and the write of a transaction. On an ordinary handle of sql.Open,
// SQLite then rejects the write. A transaction of OpenDB holds the write lock
// from its beginning, so the enqueue waits instead.
func TestTransactionOfOpenDBIsNeverRefusedBecauseItHasRead(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	plain, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	handle := opened(t, admin.Path(r))
	if _, err := handle.Exec(`CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (0)`); err != nil {
		t.Fatal(err)
	}
	err = readThenWrite(t.Context(), plain, func() { runnerkit.Enqueue(t, r, quick.With(nil)) })
	refused, ok := errors.AsType[*sqlite.Error](err)
	if !ok || refused.Code()&0xff != sqliteBusy {
		t.Fatalf("a plain handle: got error %v, want SQLITE_BUSY", err)
	}
	var enqueued sync.WaitGroup
	testkit.NoError(t, readThenWrite(t.Context(), handle, func() {
		enqueued.Go(func() {
			_, err := r.Enqueue(t.Context(), quick.With(nil))
			testkit.NoError(t, err)
		})
	}))
	enqueued.Wait()
	testkit.Equal(t, "number", count(t, handle, `SELECT n FROM numbers`), 1)
}

// TestTransactionsOfOpenDBAreNotBusyBesideWorker runs transactions that read
// and then write, from several goroutines, while a worker and other goroutines
// write.
func TestTransactionsOfOpenDBAreNotBusyBesideWorker(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := opened(t, admin.Path(r))
	if _, err := handle.Exec(`CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (0)`); err != nil {
		t.Fatal(err)
	}
	r.Register(quick.Handler(func(context.Context, any) error { return nil }))
	runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 4})
	var done atomic.Bool
	var writers, others sync.WaitGroup
	others.Go(func() {
		for !done.Load() {
			_, err := r.Enqueue(t.Context(), quick.With(nil))
			testkit.NoError(t, err)
		}
	})
	for range 8 {
		writers.Go(func() {
			for range 25 {
				testkit.NoError(t, readThenWrite(t.Context(), handle, func() {}))
			}
		})
	}
	writers.Wait()
	done.Store(true)
	others.Wait()
	testkit.Equal(t, "committed transactions", count(t, handle, `SELECT n FROM numbers`), 200)
}

// TestOpenDBCreatesFileOfApplication checks that New and Open accept a file
// that OpenDB made, before and after the application has tables in it.
func TestOpenDBCreatesFileOfApplication(t *testing.T) {
	handle := opened(t, filepath.Join(t.TempDir(), "a file?#%.db"))
	if _, err := handle.Exec(`CREATE TABLE users (id INTEGER PRIMARY KEY); CREATE TABLE mails (to_id REFERENCES users)`); err != nil {
		t.Fatal(err)
	}
	if _, err := handle.Exec(`INSERT INTO mails VALUES (1)`); err == nil {
		t.Error("got no error for a row whose foreign key has no row, want one")
	}
	var mode string
	testkit.NoError(t, handle.QueryRow(`PRAGMA journal_mode`).Scan(&mode))
	testkit.Equal(t, "journal mode", mode, "wal")
	testkit.Equal(t, "auto_vacuum", count(t, handle, `PRAGMA auto_vacuum`), 2)
	r, err := runner.New(t.Context(), handle, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tx := begin(t, opened(t, admin.Path(r)))
	task, err := r.EnqueueTx(t.Context(), tx, quick.With(nil))
	testkit.NoError(t, err)
	testkit.NoError(t, tx.Commit())
	testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Pending)

	path := opened(t, filepath.Join(t.TempDir(), "empty.db"))
	var file string
	testkit.NoError(t, path.QueryRow(`SELECT file FROM pragma_database_list`).Scan(&file))
	empty, err := runner.Open(t.Context(), file, runner.Options{})
	testkit.NoError(t, err)
	testkit.NoError(t, empty.Close())
}

// TestManyProgramsCreateFileWithOpenDB opens new files from several goroutines
// at once.
func TestManyProgramsCreateFileWithOpenDB(t *testing.T) {
	for range 12 {
		path := filepath.Join(t.TempDir(), "new.db")
		var openers sync.WaitGroup
		for range 4 {
			openers.Go(func() {
				handle, err := runner.OpenDB(t.Context(), path)
				if err == nil {
					_, err = handle.Exec(`CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY)`)
					handle.Close()
				}
				testkit.NoError(t, err)
			})
		}
		openers.Wait()
	}
}

func TestReadOnlyTransactionOfOpenDBLetsOthersWrite(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	tx, err := opened(t, admin.Path(r)).BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	tasks := func() (n int) {
		testkit.NoError(t, tx.QueryRow(`SELECT count(*) FROM tasks`).Scan(&n))
		return n
	}
	testkit.Equal(t, "tasks", tasks(), 0)
	runnerkit.Enqueue(t, r, quick.With(nil))
	testkit.Equal(t, "tasks in the state that the transaction reads", tasks(), 0)
}

func TestOpenDBRefusesPathsThatCannotBeDatabase(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]error{
		"": jobs.ErrInvalid, ":memory:": jobs.ErrInvalid, dir: jobs.ErrSchema, filepath.Join(dir, "missing", "a.db"): jobs.ErrNoDatabase,
	} {
		handle, err := runner.OpenDB(t.Context(), path)
		if err == nil {
			handle.Close()
		}
		testkit.ErrorIs(t, err, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(jobs.ErrShutdown)
	_, err := runner.OpenDB(ctx, filepath.Join(dir, "new.db"))
	testkit.ErrorIs(t, err, jobs.ErrShutdown)
}

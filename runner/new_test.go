package runner_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// todo returns a handle to the database of an application, which has a table
// named tasks.
func todo(t *testing.T) *sql.DB {
	t.Helper()
	handle, err := openApp(filepath.Join(t.TempDir(), "todo.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handle.Close() })
	if _, err := handle.Exec(`PRAGMA user_version = 3; CREATE TABLE tasks (title TEXT); INSERT INTO tasks VALUES ('buy milk');
		CREATE TABLE effects (task_id)`); err != nil {
		t.Fatal(err)
	}
	return handle
}

func TestRunnerInDatabaseOfApplication(t *testing.T) {
	handle := todo(t)
	handle.SetMaxOpenConns(1) // one connection is enough for the application, because the Runner does not use its connections
	r, err := runner.New(t.Context(), handle, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() }) // runs last, after the cleanup function of runnerkit.Work has stopped Work
	r.Register(ship.Handler(shipper(handle, func(ctx context.Context, at string, _ *sql.Tx) error {
		if at == "start" {
			_, err := runner.Step(ctx, "a step", func(context.Context) (int, error) { runner.Progress(ctx, 1, 1, ""); return 1, nil })
			return err
		}
		runner.Logger(ctx).Info(at)
		return nil
	})))
	runnerkit.Work(t, r)
	tx := begin(t, handle)
	task, err := r.EnqueueTx(t.Context(), tx, ship.With(nil, jobs.Unique("once")))
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.EnqueueTx(t.Context(), tx, ship.With(nil, jobs.Unique("once")))
	testkit.NoError(t, err)
	testkit.Equal(t, "task of the same key", again.ID, task.ID)
	if _, err := tx.Exec(`INSERT INTO tasks VALUES ('wait')`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	task, err = r.Await(ctx, task.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "state", task.State, jobs.Completed)
	testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 1)
	testkit.Equal(t, "tasks of the application", count(t, handle, `SELECT count(*) FROM tasks`), 2)
	testkit.Equal(t, "tasks with a step", count(t, handle, `SELECT count(*) FROM runner_tasks JOIN runner_steps ON task_id = id`), 1)
	testkit.Equal(t, "user_version", count(t, handle, `SELECT user_version FROM pragma_user_version`), 3)

	other, err := runner.Open(t.Context(), admin.Path(r), runner.Options{MustExist: true}) // opens the file as the command line does
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	testkit.Equal(t, "job", runnerkit.Get(t, other, task.ID).Job, "ship")
	if runnerkit.Output(t, other, task.ID) == "" {
		t.Error("got no output of the task, want the log lines of its function")
	}
}

func TestNewRejectsUnsuitableHandlesAndPrefixes(t *testing.T) {
	memory, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	foreign := sql.OpenDB(foreignDriver{})
	defer foreign.Close()
	for name, handle := range map[string]*sql.DB{"in memory": memory, "of another driver": foreign} {
		if _, err := runner.New(t.Context(), handle, runner.Options{}); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: got error %v, want one that is jobs.ErrInvalid", name, err)
		}
	}
	_, err = runner.New(t.Context(), todo(t), runner.Options{Prefix: "a-b"})
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	handle := todo(t)
	if _, err := handle.Exec(`CREATE TABLE jobs_tasks (x)`); err != nil {
		t.Fatal(err)
	}
	_, err = runner.New(t.Context(), handle, runner.Options{Prefix: "jobs_"})
	testkit.ErrorIs(t, err, jobs.ErrConflict)
}

// foreignDriver is a database driver that is not for SQLite.
type foreignDriver struct{}

func (d foreignDriver) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

func (d foreignDriver) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (d foreignDriver) Driver() driver.Driver { return d }

package runner_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// todo is the database of an application that has a table named tasks.
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

func TestARunnerOverTheApplicationsOwnDatabase(t *testing.T) {
	handle := todo(t)
	handle.SetMaxOpenConns(1) // the transactions of the application and the Runner use connections of their own
	r, err := runner.New(t.Context(), handle, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() }) // after Work has returned
	r.Register(ship.Handler(shipper(handle, func(ctx context.Context, at string, _ *sql.Tx) error {
		if at == "start" {
			_, err := runner.Step(ctx, "a step", func(context.Context) (int, error) { runner.Progress(ctx, 1, 1, ""); return 1, nil })
			return err
		}
		runner.Logger(ctx).Info(at)
		return nil
	})))
	work(t, r)
	tx := begin(t, handle)
	task, err := r.EnqueueTx(t.Context(), tx, ship.With(nil, jobs.Unique("once")))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.EnqueueTx(t.Context(), tx, ship.With(nil, jobs.Unique("once"))); err != nil || again.ID != task.ID {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if _, err := tx.Exec(`INSERT INTO tasks VALUES ('wait')`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if task, err = r.Await(ctx, task.ID); err != nil || task.State != jobs.Completed {
		t.Fatalf("got %+v, %v; want no error, task.State = Completed", task, err)
	}
	if n := count(t, handle, `SELECT count(*) FROM effects`); n != 1 {
		t.Errorf("%d effects", n)
	}
	if n := count(t, handle, `SELECT count(*) FROM tasks`); n != 2 {
		t.Errorf("the application has %d tasks", n)
	}
	if n := count(t, handle, `SELECT count(*) FROM runner_tasks JOIN runner_steps ON task_id = id`); n != 1 {
		t.Errorf("%d tasks with a step", n)
	}
	if n := count(t, handle, `SELECT user_version FROM pragma_user_version`); n != 3 {
		t.Errorf("user_version is %d", n)
	}

	other, err := runner.Open(t.Context(), r.Path(), runner.Options{MustExist: true}) // like the command line
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if same := get(t, other, task.ID); same.Job != "ship" || output(t, other, task.ID) == "" {
		t.Errorf(`got %+v; want Job = "ship", output(t, other, task.ID) != ""`, same)
	}
}

func TestHandlesThatNewCannotTake(t *testing.T) {
	memory, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	foreign := sql.OpenDB(foreignDriver{})
	defer foreign.Close()
	for name, handle := range map[string]*sql.DB{"in memory": memory, "of another driver": foreign} {
		if _, err := runner.New(t.Context(), handle, runner.Options{}); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: got %v; want Is(err, ErrInvalid)", name, err)
		}
	}
	if _, err := runner.New(t.Context(), todo(t), runner.Options{Prefix: "a-b"}); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("a prefix that cannot be: %v", err)
	}
	handle := todo(t)
	if _, err := handle.Exec(`CREATE TABLE jobs_tasks (x)`); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.New(t.Context(), handle, runner.Options{Prefix: "jobs_"}); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// foreignDriver is a driver of another database.
type foreignDriver struct{}

func (d foreignDriver) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

func (d foreignDriver) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (d foreignDriver) Driver() driver.Driver { return d }

package runner_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// shopVariable is an environment variable. If it is set, the test program runs
// shop and no tests. Its value is the path of a database and the point at which
// the worker of "shop" kills itself.
const shopVariable = "RUNNER_TEST_SHOP"

// shop runs a worker until no task is due. The worker kills itself at the point
// that how names. The jobs order and invoice have steps that write rows. A task
// of the job ship writes a row and enqueues a task of the job mail, which
// writes a row, too.
func shop(path string, how []string) error {
	point := strings.Join(how, " ")
	ctx := context.Background()
	r, err := runner.Open(ctx, path, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	handle, err := runner.OpenDB(ctx, path)
	if err != nil {
		return err
	}
	defer handle.Close()
	die := func(at string) {
		if at != point {
			return
		}
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
			panic("cannot kill myself")
		}
		select {}
	}
	r.Register(order.Handler(func(ctx context.Context, _ any) error {
		task, _ := runner.TaskFromContext(ctx)
		effect := func(ctx context.Context) (int64, error) {
			_, err := handle.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, task.ID)
			return task.ID, err
		}
		if _, err := runner.Step(ctx, "charge", effect); err != nil {
			return err
		}
		die("charged")
		if err := runner.Sleep(ctx, "cool-off", 20*time.Millisecond); err != nil {
			die("asleep")
			return err
		}
		die("awake")
		id, err := runner.Step(ctx, "ship", effect)
		if err == nil && id != task.ID {
			err = jobs.Cancel(fmt.Errorf("step returned %d", id))
		}
		die("shipped")
		return err
	}), invoice.Handler(func(ctx context.Context, _ any) error {
		task, _ := runner.TaskFromContext(ctx)
		for _, name := range []string{"first", "second"} {
			if err := effectInStep(ctx, handle, name, task.ID, func(at string) error { die(name + " " + at); return nil }); err != nil {
				return err
			}
		}
		return nil
	}), mail.Handler(shipper(handle, func(context.Context, string, *sql.Tx) error { return nil })),
		ship.Handler(shipper(handle, func(ctx context.Context, at string, tx *sql.Tx) error {
			if at == "effect" {
				if _, err := r.EnqueueTx(ctx, tx, mail.With(nil, jobs.MaxLosses(100))); err != nil {
					return err
				}
			}
			die(at)
			return nil
		})))
	return r.Work(ctx, runner.WorkOptions{Concurrency: 3, Lease: runner.MinLease, UntilEmpty: true})
}

var (
	mail    = jobs.Define[any]("mail")
	order   = jobs.Define[any]("order")
	invoice = jobs.Define[any]("invoice")
)

// startShop starts shop in a separate process.
func startShop(t *testing.T, path, point string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", shopVariable, path, point), "GORACE=atexit_sleep_ms=0")
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Process.Kill() }) // if the test has failed, the worker may still run
	return worker
}

func TestEffectsHappenOnceWhereverWorkerIsKilled(t *testing.T) {
	points := []string{"start", "effect", "finished", "committed"}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			testShop(t, 1, func(r *runner.Runner, _ *sql.DB) {
				if startShop(t, admin.Path(r), point).Wait() == nil {
					t.Errorf("got a worker that ended by itself, want it killed at point %q", point)
				}
			})
		})
	}
	t.Run("anywhere", func(t *testing.T) {
		t.Parallel()
		testShop(t, 150, func(r *runner.Runner, handle *sql.DB) {
			for i := range 8 {
				worker := startShop(t, admin.Path(r), "none")
				until(t, r, func() bool { return count(t, handle, `SELECT count(*) FROM effects`) > 30*i })
				_ = worker.Process.Kill()
				if worker.Wait() == nil { // the worker had run all tasks and ended before the kill
					if i == 0 {
						t.Error("got no killed worker, want at least one")
					}
					break
				}
			}
		})
	})
}

// testShop enqueues n tasks. killed then starts workers and kills them. At the
// end testShop runs a worker until no task is left.
func testShop(t *testing.T, n int, killed func(*runner.Runner, *sql.DB)) {
	path := filepath.Join(t.TempDir(), "shop.db")
	r, err := runner.Open(t.Context(), path, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	handle := app(t, r)
	for range n { // with a low MaxLosses, the kills of this test would make the tasks fail
		runnerkit.Enqueue(t, r, ship.With(nil, jobs.MaxLosses(100)))
	}
	killed(r, handle)
	if err := startShop(t, admin.Path(r), "none").Wait(); err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "unfinished tasks", count(t, handle, `SELECT count(*) FROM tasks WHERE state <> 'completed'`), 0)
	if tasks := count(t, handle, `SELECT count(*) FROM tasks`); tasks != 2*n {
		t.Errorf("%d tasks, want %d", tasks, 2*n)
	}
	if effects := count(t, handle, `SELECT count(*) FROM effects`); effects != 2*n {
		t.Errorf("%d effects, want %d", effects, 2*n)
	}
	testkit.Equal(t, "tasks without exactly one effect", count(t, handle, `SELECT count(*) FROM tasks
		WHERE (SELECT count(*) FROM effects WHERE task_id = tasks.id) <> 1`), 0)
}

func TestStepsRunOnceWhereverWorkerIsKilled(t *testing.T) {
	for _, point := range []string{"charged", "asleep", "awake", "shipped"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := runnerkit.Open(t, runner.Options{})
			handle := app(t, r)
			task := runnerkit.Enqueue(t, r, order.With(nil))
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for kills := 0; ; {
				// The worker may end without an error before it reaches the
				// point, because no task is due while the task sleeps. Then
				// start the next worker.
				if err := startShop(t, admin.Path(r), point).Wait(); err == nil {
					task = runnerkit.Get(t, r, task.ID)
					if task.State == jobs.Completed {
						t.Errorf("got a completed task, want its worker killed at point %q", point)
						break
					}
				} else if kills++; kills == 1 {
					break
				}
				if ctx.Err() != nil {
					t.Fatalf("got no worker killed at point %q within a minute", point)
				}
			}
			for task = runnerkit.Get(t, r, task.ID); !task.State.Finished() && ctx.Err() == nil; task = runnerkit.Get(t, r, task.ID) {
				if err := startShop(t, admin.Path(r), "none").Wait(); err != nil {
					t.Fatal(err)
				}
			}
			testkit.Equal(t, "state", task.State, jobs.Completed)
			testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 2)
			testkit.Equal(t, "losses", task.Losses, 1)
		})
	}
}

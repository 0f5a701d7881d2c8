package runner_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// batchVariable is an environment variable that makes the test program a worker
// with batches. Its value is the path of a database and the point at which the
// worker kills itself.
const batchVariable = "RUNNER_TEST_BATCH"

// batchWorker runs a worker until no task is due. For each batch, the worker
// first ends the tasks with odd inputs one by one; these tasks have no effects.
// Then, in one transaction, it commits the effects of the tasks with even
// inputs and finishes these tasks.
func batchWorker(path string, how []string) error {
	r, err := runner.Open(context.Background(), path, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	handle, err := openApp(path)
	if err != nil {
		return err
	}
	defer handle.Close()
	die := func(point string) {
		if self, err := os.FindProcess(os.Getpid()); point == how[0] && (err != nil || self.Kill() != nil) {
			panic("cannot kill myself")
		} else if point == how[0] {
			select {}
		}
	}
	r.Register(bulk.BulkHandler(7, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
		die("start")
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, task := range tasks {
			if task.Input%2 == 1 {
				task.End(nil)
				continue
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, task.Task.ID); err != nil {
				return err
			}
			if err := runner.FinishTx(task.Context, tx, nil); err != nil {
				return err
			}
		}
		die("finished")
		err = tx.Commit()
		die("committed")
		return err
	}))
	return r.Work(context.Background(), runner.WorkOptions{Concurrency: 2, Lease: runner.MinLease, UntilEmpty: true})
}

func startBatchWorker(t *testing.T, path, point string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	testkit.NoError(t, err)
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", batchVariable, path, point), "GORACE=atexit_sleep_ms=0")
	worker.Stderr = os.Stderr
	testkit.NoError(t, worker.Start())
	t.Cleanup(func() { _ = worker.Process.Kill() }) // if the test has failed, the worker may still run
	return worker
}

func TestEffectsOfBatchesHappenOnceWhereverWorkerIsKilled(t *testing.T) {
	for _, point := range []string{"start", "finished", "committed", "anywhere"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			n := 20
			if point == "anywhere" {
				n = 1000
			}
			r := runnerkit.OpenAt(t, filepath.Join(t.TempDir(), "batch.db"), runner.Options{})
			handle := app(t, r)
			enqueueNumbers(t, r, n, jobs.MaxLosses(100)) // the high limit of losses lets the tasks survive all kills of this test
			if point == "anywhere" {
				for i := range 5 {
					worker := startBatchWorker(t, admin.Path(r), "none")
					until(t, r, func() bool { return effects(t, handle) > 50*i })
					_ = worker.Process.Kill()
					_ = worker.Wait()
				}
			} else if startBatchWorker(t, admin.Path(r), point).Wait() == nil {
				t.Errorf("got a worker that ended by itself, want it killed at point %q", point)
			}
			testkit.NoError(t, startBatchWorker(t, admin.Path(r), "none").Wait())
			testkit.Equal(t, "unfinished tasks", count(t, handle, `SELECT count(*) FROM tasks WHERE state <> 'completed'`), 0)
			testkit.Equal(t, "effects", effects(t, handle), n/2)
			testkit.Equal(t, "tasks with two effects", count(t, handle, `SELECT count(*) - count(DISTINCT task_id) FROM effects`), 0)
		})
	}
}

// TestBatchSurvivesFaultAtAnyCommit lets each write fail once, before or after
// it takes effect.
func TestBatchSurvivesFaultAtAnyCommit(t *testing.T) {
	for name, inject := range map[string]func(testing.TB, *runner.Runner){"before": runnertest.FailBeforeCommit,
		"after": runnertest.FailAfterCommit} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			calls := map[int]int{}
			r.Register(bulk.BulkHandler(4, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
				for _, task := range tasks {
					calls[task.Input]++
				}
				inject(t, r) // the next write ends the tasks of this batch and claims those of the next one
				return nil
			}))
			ids := enqueueNumbers(t, r, 10)
			runnertest.RunDue(t, r)
			for i, state := range states(t, r, ids) {
				testkit.Equal(t, fmt.Sprintf("state of task %d after faults %s the commit", ids[i], name), state, "completed")
				testkit.Equal(t, "calls", calls[i+1], 1)
			}
		})
	}
}

// TestLostTaskLeavesItsBatch takes one task of a batch away from its worker.
func TestLostTaskLeavesItsBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		calls := 0
		r.Register(bulk.BulkHandler(3, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			if calls++; calls > 1 {
				return nil
			}
			testkit.NoError(t, runnertest.Lose(tasks[1].Context, r))
			<-tasks[1].Context.Done() // this context ends when a heartbeat detects that the worker has lost the task
			testkit.ErrorIs(t, context.Cause(tasks[1].Context), jobs.ErrLost)
			testkit.NoError(t, tasks[0].Context.Err())
			testkit.NoError(t, ctx.Err())
			return nil
		}))
		ids := enqueueNumbers(t, r, 3)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "calls", calls, 2)
		for i, id := range ids {
			task := runnerkit.Get(t, r, id)
			testkit.Equal(t, "state", task.State, jobs.Completed)
			testkit.Equal(t, "losses", task.Losses, i%2)
		}
	})
}

func effects(t *testing.T, handle *sql.DB) int {
	t.Helper()
	return count(t, handle, `SELECT count(*) FROM effects`)
}

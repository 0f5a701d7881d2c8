package runner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

var bulk = jobs.Define[int]("bulk", jobs.MaxAttempts(3))

// enqueueNumbers adds a task of the job bulk for each number from 1 to n.
func enqueueNumbers(t testing.TB, r *runner.Runner, n int, options ...jobs.Option) []int64 {
	t.Helper()
	specs := make([]jobs.Spec, n)
	for i := range specs {
		specs[i] = bulk.With(i+1, options...)
	}
	done, err := r.EnqueueMany(t.Context(), specs...)
	testkit.NoError(t, err)
	ids := make([]int64, n)
	for i, d := range done {
		ids[i] = d.ID
	}
	return ids
}

// inputs returns the inputs of the tasks of a batch.
func inputs(tasks []jobs.BulkTask[int]) (list []int) {
	for _, task := range tasks {
		list = append(list, task.Input)
	}
	return list
}

// states returns the state and the error of each task.
func states(t testing.TB, r *runner.Runner, ids []int64) (list []string) {
	t.Helper()
	for _, id := range ids {
		task := runnerkit.Get(t, r, id)
		list = append(list, strings.TrimSpace(string(task.State)+" "+task.Error))
	}
	return list
}

func TestBatchGetsTasksInTheirOrderAndUsesOneSlot(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var calls [][]int
		r.Register(bulk.BulkHandler(4, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			calls = append(calls, inputs(tasks))
			return nil
		}))
		enqueueNumbers(t, r, 9)
		enqueueNumbers(t, r, 1, jobs.Priority(9))
		ran := runnertest.RunDue(t, r)
		testkit.Equal(t, "calls", calls, [][]int{{1, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}})
		testkit.Len(t, "attempts", ran, 10)
		for _, task := range ran {
			testkit.Equal(t, fmt.Sprint("state of task ", task.ID), task.State, jobs.Completed)
		}
	})
}

func TestEachTaskOfBatchHasItsOwnOutcome(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		boom := errors.New("boom")
		r.Register(bulk.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			tasks[0].End(nil)
			tasks[0].End(boom) // a second End of the same task has no effect
			tasks[1].End(boom)
			tasks[2].End(jobs.RetryIn(time.Hour, boom))
			tasks[3].End(jobs.Snooze(2 * time.Hour))
			tasks[4].End(jobs.Cancel(boom))
			tasks[5].End(jobs.Fail(boom))
			return nil
		}))
		ids := enqueueNumbers(t, r, 7)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "outcomes", states(t, r, ids), []string{"completed", "retrying boom", "retrying boom", "scheduled",
			"cancelled boom", "failed boom", "completed"})
		snoozed := runnerkit.Get(t, r, ids[3])
		testkit.Equal(t, "attempts of the snoozed task", snoozed.Attempt, 0)
		testkit.Equal(t, "wait of task 3", time.Until(runnerkit.Get(t, r, ids[2]).RunAt).Round(time.Minute), time.Hour)
		testkit.Equal(t, "wait of task 4", time.Until(snoozed.RunAt).Round(time.Minute), 2*time.Hour)
	})
}

func TestErrorOfBatchIsErrorOfTasksWithoutEnd(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(bulk.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			tasks[1].End(nil)
			return jobs.Cancel(errors.New("no such table"))
		}))
		ids := enqueueNumbers(t, r, 3)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "outcomes", states(t, r, ids),
			[]string{"cancelled no such table", "completed", "cancelled no such table"})
	})
}

func TestPanicOfBatchIsPanicOfEachTask(t *testing.T) {
	for name, boom := range map[string]func(){
		"panic: boom\n":                    func() { panic("boom") },
		"the function ended its goroutine": func() { runtime.Goexit() },
	} {
		r := runnerkit.Open(t, runner.Options{})
		r.Register(bulk.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			tasks[1].End(nil)
			boom()
			return nil
		}))
		ids := enqueueNumbers(t, r, 3, jobs.MaxAttempts(1))
		runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 1})
		for i, id := range ids {
			task := runnerkit.Get(t, r, id)
			want := jobs.Failed
			if i == 1 {
				want = jobs.Completed
			} else {
				testkit.Equal(t, "reason", task.Reason, jobs.ReasonPanic)
				testkit.Contains(t, task.Error, name)
			}
			testkit.Equal(t, fmt.Sprint("state of task ", id), task.State, want)
		}
	}
}

func TestTaskWithInvalidArgumentsFailsWithoutItsBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var calls [][]int
		r.Register(bulk.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			calls = append(calls, inputs(tasks))
			return nil
		}))
		enqueueNumbers(t, r, 1)
		bad := runnerkit.Enqueue(t, r, jobs.Define[string]("bulk").With("x"))
		enqueueNumbers(t, r, 1)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "calls", calls, [][]int{{1, 1}})
		got := runnerkit.Get(t, r, bad.ID)
		testkit.Equal(t, "state", got.State, jobs.Retrying)
		testkit.Equal(t, "reason", got.Reason, jobs.ReasonArgs)
	})
}

func TestBatchWithResultsStoresThemByTask(t *testing.T) {
	square := jobs.DefineResult[int, int]("square")
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		short := false
		r.Register(square.BulkHandler(5, func(_ context.Context, tasks []jobs.BulkTask[int]) ([]int, error) {
			if short {
				return []int{1}, nil
			}
			tasks[1].End(errors.New("two"))
			var squares []int
			for _, task := range tasks {
				squares = append(squares, task.Input*task.Input)
			}
			return squares, nil
		}))
		for n := range 3 {
			runnerkit.Enqueue(t, r, square.With(n+2))
		}
		runnertest.RunDue(t, r)
		testkit.Equal(t, "states", states(t, r, []int64{1, 2, 3}), []string{"completed", "retrying two", "completed"})
		for id, want := range map[int64]int{1: 4, 3: 16} {
			got, err := square.Result(r.Get(t.Context(), id))
			testkit.NoError(t, err)
			testkit.Equal(t, fmt.Sprint("result of task ", id), got, want)
		}
		short = true
		runnerkit.Enqueue(t, r, square.With(1))
		runnerkit.Enqueue(t, r, square.With(2))
		runnertest.RunDue(t, r)
		testkit.Equal(t, "states", states(t, r, []int64{4}),
			[]string{"retrying the function of square returned 1 results for 2 tasks"})
	})
}

// TestOneTaskOfBatchEndsByItsTimeoutAndAnotherByItsCancellation checks when the
// contexts of the two tasks end, and that the context of the batch does not end
// at these times.
func TestOneTaskOfBatchEndsByItsTimeoutAndAnotherByItsCancellation(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		began := make(chan struct{})
		var batchEnded error
		r.Register(bulk.BulkHandler(10, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			close(began)
			<-tasks[0].Context.Done() // this context ends at the timeout of the task
			tasks[0].End(tasks[0].Context.Err())
			<-tasks[1].Context.Done() // this context ends at the cancellation of the task
			tasks[1].End(tasks[1].Context.Err())
			batchEnded = ctx.Err()
			testkit.NoError(t, tasks[2].Context.Err())
			return nil
		}))
		ids := []int64{runnerkit.Enqueue(t, r, bulk.With(1, jobs.Timeout(time.Minute), jobs.MaxAttempts(1))).ID}
		ids = append(ids, enqueueNumbers(t, r, 2)...)
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		<-began
		time.Sleep(2 * time.Minute)
		testkit.Equal(t, "states after the timeout", states(t, r, ids),
			[]string{"failed ran for longer than 1m0s", "running", "running"})
		_, err := r.Cancel(t.Context(), ids[1:2], runner.CancelOptions{})
		testkit.NoError(t, err)
		synctest.Wait()
		time.Sleep(time.Second)
		testkit.Equal(t, "state of the cancelled task", runnerkit.Get(t, r, ids[1]).State, jobs.Cancelled)
		testkit.Equal(t, "state of the last task", runnerkit.Get(t, r, ids[2]).State, jobs.Completed)
		testkit.NoError(t, batchEnded)
		stop()
	})
}

func TestContextOfBatchEndsWithItsLastTask(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var cause error
		r.Register(bulk.BulkHandler(10, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}))
		ids := enqueueNumbers(t, r, 3)
		stop := runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
		time.Sleep(time.Second)
		stop()
		testkit.ErrorIs(t, cause, jobs.ErrShutdown)
		testkit.Equal(t, "states after a shutdown", states(t, r, ids), slices.Repeat([]string{"pending its worker stopped"}, 3))
	}, runner.Options{})
}

func TestLimitsHoldForTasksOfBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var calls [][]int
		r.Register(bulk.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			calls = append(calls, inputs(tasks))
			return nil
		}))
		target := admin.Target{Kind: admin.JobTarget, Name: "bulk"}
		testkit.NoError(t, admin.SetLimit(t.Context(), r, admin.Limit{Target: target, Running: 3}))
		enqueueNumbers(t, r, 5)
		enqueueNumbers(t, r, 4, jobs.Queue("other"))
		testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{"other"}, admin.PauseOptions{}))
		runnerkit.Enqueue(t, r, bulk.With(6, jobs.Lane("a")))
		runnerkit.Enqueue(t, r, bulk.With(7, jobs.Lane("a")))
		runnertest.RunDue(t, r)
		testkit.Equal(t, "calls", calls, [][]int{{1, 2, 3}, {4, 5, 6}, {7}})
		for _, limit := range []admin.Limit{
			{Target: admin.Target{Kind: admin.QueueTarget, Name: "other"}, Running: 2},
			{Target: admin.Target{Kind: admin.AllTarget}, Running: 2},
		} {
			calls = nil
			testkit.NoError(t, admin.SetLimit(t.Context(), r, limit))
			runnerkit.Enqueue(t, r, bulk.With(1))
			enqueueNumbers(t, r, 3, jobs.Queue("other"))
			testkit.NoError(t, admin.ResumeQueues(t.Context(), r, "other"))
			runnertest.RunDue(t, r)
			testkit.Between(t, "number of batches", len(calls), 2, 8)
			for _, call := range calls {
				testkit.Between(t, "size of a batch", len(call), 1, 2)
			}
		}
	})
}

func TestSlotOfQueueRunsBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var mu sync.Mutex
		var running, most int
		r.Register(bulk.BulkHandler(5, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			tasks[0].End(nil) // this task has ended, but its batch keeps the slot until the function returns
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}))
		ids := enqueueNumbers(t, r, 30)
		began := time.Now()
		runnertest.RunDue(t, r, runner.WorkOptions{Concurrency: 8, Queues: []jobs.QueueMax{{Name: "default", Max: 2}}})
		testkit.Equal(t, "batches at once", most, 2)
		testkit.Equal(t, "time for 6 batches in 2 slots", time.Since(began).Round(time.Second), 6*time.Second)
		for _, state := range states(t, r, ids) {
			testkit.Equal(t, "state", state, "completed")
		}
	}, runner.Options{})
}

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestFunctionsOfAttemptTakeContextOfTaskOfBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		fail := true
		charged := map[int]int{}
		r.Register(bulk.BulkHandler(10, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			if _, in := runner.TaskFromContext(ctx); in {
				t.Error("got a task from the context of the batch, want none")
			}
			for _, task := range tasks {
				runner.Logger(task.Context).Info("number", "n", task.Input) // `runner logs ID` shows this record
				runner.Progress(task.Context, int64(task.Input), 9, "")
				if _, err := runner.Step(task.Context, "charge", func(context.Context) (int, error) {
					charged[task.Input]++
					return 0, nil
				}); err != nil {
					return err
				}
			}
			if fail {
				return errors.New("the first attempt fails")
			}
			return nil
		}))
		ids := enqueueNumbers(t, r, 3)
		runnertest.RunDue(t, r)
		fail = false
		runnertest.Advance(t, time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "effects", charged, map[int]int{1: 1, 2: 1, 3: 1})
		for i, id := range ids {
			task := runnerkit.Get(t, r, id)
			testkit.Equal(t, "state", task.State, jobs.Completed)
			testkit.Equal(t, "output", runnerkit.Output(t, r, id), fmt.Sprintf("level=INFO msg=number n=%d\n", i+1))
			testkit.Equal(t, "progress", *task.Progress, jobs.Progress{Done: int64(i + 1), Total: 9})
		}
	})
}

// TestOneTransactionEndsSeveralTasksOfBatch finishes several tasks of a batch
// in the same transaction as their effects.
func TestOneTransactionEndsSeveralTasksOfBatch(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	commit := false
	r.Register(bulk.BulkHandler(10, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, task := range tasks {
			if _, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, task.Task.ID); err != nil {
				return err
			}
			if err := runner.FinishTx(task.Context, tx, task.Input); err != nil {
				return err
			}
		}
		if !commit {
			return nil
		}
		return tx.Commit()
	}))
	ids := enqueueNumbers(t, r, 5, jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Hour}))
	runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 2})
	for _, state := range states(t, r, ids) {
		testkit.Equal(t, "state without a commit", state, "retrying the transaction of FinishTx was not committed")
	}
	testkit.Equal(t, "effects without a commit", effects(t, handle), 0)
	commit = true
	_, err := r.Retry(t.Context(), ids, runner.RetryOptions{})
	testkit.NoError(t, err)
	runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 2})
	for i, id := range ids {
		task := runnerkit.Get(t, r, id)
		testkit.Equal(t, "state", task.State, jobs.Completed)
		testkit.Equal(t, "result", string(task.Result), fmt.Sprint(i+1))
	}
	testkit.Equal(t, "effects", effects(t, handle), 5)
}

// taskKey is the key of a value that a middleware adds to a context.
type taskKey struct{}

// TestMiddlewareRunsForEachTaskOfBatch uses middleware that works as a
// semaphore of size one: only one task at a time can pass it.
func TestMiddlewareRunsForEachTaskOfBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		one := make(chan struct{}, 1)
		limited := false
		var seen []int64
		var mu sync.Mutex
		r.Use(func(ctx context.Context, task jobs.Task,
			next func(context.Context, jobs.Task) (json.RawMessage, error)) (json.RawMessage, error) {
			mu.Lock()
			seen = append(seen, task.ID)
			mu.Unlock()
			if limited {
				one <- struct{}{}
				defer func() { <-one }()
			}
			if task.ID == 2 {
				return nil, jobs.Cancel(errors.New("refused"))
			}
			return next(context.WithValue(ctx, taskKey{}, task.ID), task)
		})
		var calls [][]int
		r.Register(bulk.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			calls = append(calls, inputs(tasks))
			for _, task := range tasks {
				testkit.Equal(t, "value of the middleware", task.Context.Value(taskKey{}), any(task.Task.ID))
			}
			return nil
		}))
		ids := enqueueNumbers(t, r, 4)
		runnertest.RunDue(t, r)
		slices.Sort(seen)
		testkit.Equal(t, "tasks that the middleware saw", seen, ids)
		testkit.Equal(t, "calls", calls, [][]int{{1, 3, 4}})
		testkit.Equal(t, "outcomes", states(t, r, ids), []string{"completed", "cancelled refused", "completed", "completed"})
		limited, calls = true, nil
		ids = enqueueNumbers(t, r, 3)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "calls with a semaphore", len(calls), 3)
		testkit.Equal(t, "outcomes with a semaphore", states(t, r, ids), []string{"completed", "completed", "completed"})
	})
}

func TestCrashOfBatchIsLossOfEachTask(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var calls [][]int
		r.Register(bulk.BulkHandler(3, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			calls = append(calls, inputs(tasks))
			return nil
		}))
		ids := enqueueNumbers(t, r, 3)
		ids = append(ids, enqueueNumbers(t, r, 1, jobs.MaxLosses(2))...) // the first loss of this task makes it a suspect, which runs alone
		runnertest.CrashAfterClaim(t, r, 4)
		ran := runnertest.RunDue(t, r)
		testkit.Len(t, "attempts", ran, 4)
		testkit.Len(t, "calls", calls, 2)
		testkit.Equal(t, "size of the batch of a suspect", min(len(calls[0]), len(calls[1])), 1)
		for _, id := range ids {
			task := runnerkit.Get(t, r, id)
			testkit.Equal(t, "state", task.State, jobs.Completed)
			testkit.Equal(t, "losses", task.Losses, 1)
		}
	})
}

package runner_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// endAll ends all tasks of a batch.
func endAll(tasks []jobs.BulkTask[int]) {
	for _, task := range tasks {
		task.End(nil)
	}
}

func TestSlotIsTakenUntilBatchFunctionReturns(t *testing.T) {
	for name, options := range map[string]struct {
		open runner.Options
		work runner.WorkOptions
	}{
		"slots of the worker": {work: runner.WorkOptions{Concurrency: 2}},
		"slots of the queue":  {work: runner.WorkOptions{Concurrency: 8, Queues: []jobs.QueueMax{{Name: "default", Max: 2}}}},
		"ends are collected":  {runner.Options{WriteEvery: time.Second, Sync: runner.SyncFlash}, runner.WorkOptions{Concurrency: 2}},
	} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			running, most := make(chan struct{}, 9), 0
			var mu sync.Mutex
			r.Register(bulk.BulkHandler(3, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
				running <- struct{}{}
				mu.Lock()
				most = max(most, len(running))
				mu.Unlock()
				endAll(tasks)
				time.Sleep(10 * time.Second)
				testkit.NoError(t, ctx.Err())
				testkit.Equal(t, name+": state before the return", runnerkit.Get(t, r, tasks[0].Task.ID).State, jobs.Completed)
				testkit.Equal(t, name+": state of the last task", runnerkit.Get(t, r, tasks[2].Task.ID).State, jobs.Running)
				<-running
				return nil
			}))
			enqueueNumbers(t, r, 18)
			began := time.Now()
			ran := runnertest.RunDue(t, r, options.work)
			testkit.Len(t, name+": attempts", ran, 18)
			testkit.Equal(t, name+": calls at once", most, 2)
			testkit.Equal(t, name+": time for 6 calls in 2 slots", time.Since(began).Round(10*time.Second), 30*time.Second)
			testkit.Equal(t, name+": calls that have not returned", len(running), 0)
		}, options.open)
	}
}

// TestShutdownEndsBatchFunctionThatHasEndedItsTasks checks two functions that
// have ended all tasks of their batch: one waits for its context, and the other
// ignores its context.
func TestShutdownEndsBatchFunctionThatHasEndedItsTasks(t *testing.T) {
	for name, test := range map[string]struct {
		ignores bool
		took    time.Duration
	}{"waits for its context": {false, 0}, "ignores its context": {true, 5 * time.Second}} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			var cause error
			r.Register(bulk.BulkHandler(10, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
				endAll(tasks)
				<-ctx.Done()
				cause = context.Cause(ctx)
				if test.ignores {
					time.Sleep(time.Minute)
				}
				return nil
			}))
			enqueueNumbers(t, r, 3)
			stop := runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
			time.Sleep(time.Minute)
			synctest.Wait()
			testkit.NoError(t, cause)
			began := time.Now()
			stop()
			synctest.Wait()
			testkit.ErrorIs(t, cause, jobs.ErrShutdown)
			testkit.Equal(t, name+": time of the shutdown", time.Since(began).Round(time.Second), test.took)
			if test.ignores {
				time.Sleep(time.Minute) // wait until the function has returned
			}
		}, runner.Options{})
	}
}

// TestStopAfterEndOfTaskKeepsItsOutcome lets a task time out after the
// function has ended it, and before the function returns.
func TestStopAfterEndOfTaskKeepsItsOutcome(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(bulk.BulkHandler(2, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			for _, task := range tasks {
				task.End(jobs.Cancel(errors.New("never again")))
			}
			<-ctx.Done()
			return nil
		}))
		ids := enqueueNumbers(t, r, 2, jobs.Timeout(time.Second))
		runnertest.RunDue(t, r)
		for _, id := range ids {
			task := runnerkit.Get(t, r, id)
			testkit.Equal(t, "state", task.State, jobs.Cancelled)
			testkit.Equal(t, "error", task.Error, "never again")
		}
	})
}

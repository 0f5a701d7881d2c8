package runner_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

// endAll ends all tasks of a batch.
func endAll(tasks []jobs.BatchTask[int]) {
	for _, task := range tasks {
		task.End(nil)
	}
}

func TestASlotIsTakenUntilTheBatchFunctionReturns(t *testing.T) {
	for name, options := range map[string]runner.Options{
		"slots of the worker":  {Concurrency: 2},
		"slots of the queue":   {Concurrency: 8, Queues: []runner.QueueMax{{Queue: "default", Max: 2}}},
		"ends are collected":   {Concurrency: 2, WriteEvery: time.Second, Sync: runner.Flash},
		"middleware is quick":  {Concurrency: 2, StuckAfter: 10 * time.Millisecond},
		"functions are killed": {Concurrency: 2, StuckAfter: 10 * time.Millisecond, ReleaseStuck: true},
	} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			running, most := make(chan struct{}, 9), 0
			var mu sync.Mutex
			r.Register(bulk.BatchHandler(3, func(ctx context.Context, tasks []jobs.BatchTask[int]) error {
				running <- struct{}{}
				mu.Lock()
				most = max(most, len(running))
				mu.Unlock()
				endAll(tasks)
				time.Sleep(10 * time.Second)
				testkit.NoError(t, ctx.Err())
				testkit.Equal(t, name+": state before the return", runnerkit.Get(t, r, tasks[0].Task.ID).State, jobs.Completed)
				<-running
				return nil
			}))
			enqueueNumbers(t, r, 18)
			began := time.Now()
			ran := runnertest.Drain(t, r)
			testkit.Len(t, name+": attempts", ran, 18)
			testkit.Equal(t, name+": calls at once", most, 2)
			testkit.Equal(t, name+": time for 6 calls in 2 slots", time.Since(began).Round(10*time.Second), 30*time.Second)
			testkit.Equal(t, name+": calls that have not returned", len(running), 0)
		}, options)
	}
}

// TestAShutdownEndsABatchFunctionThatHasEndedItsTasks checks two functions that have ended all tasks of their batch: one waits for its
// context, and the other ignores its context.
func TestAShutdownEndsABatchFunctionThatHasEndedItsTasks(t *testing.T) {
	for name, test := range map[string]struct {
		ignores bool
		took    time.Duration
	}{"waits for its context": {false, 0}, "ignores its context": {true, 5 * time.Second}} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			var cause error
			r.Register(bulk.BatchHandler(10, func(ctx context.Context, tasks []jobs.BatchTask[int]) error {
				endAll(tasks)
				<-ctx.Done()
				cause = context.Cause(ctx)
				if test.ignores {
					time.Sleep(time.Minute)
				}
				return nil
			}))
			enqueueNumbers(t, r, 3)
			stop := runnerkit.Work(t, r)
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
		}, runner.Options{Grace: -1})
	}
}

func TestAReleasedBatchFreesItsSlotBeforeItsFunctionReturns(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		calls := 0
		r.Register(bulk.BatchHandler(2, func(_ context.Context, tasks []jobs.BatchTask[int]) error {
			if calls++; calls == 1 {
				tasks[0].End(nil)
				time.Sleep(time.Hour)
			}
			return nil
		}))
		enqueueNumbers(t, r, 4, jobs.Timeout(time.Minute), jobs.MaxAttempts(1))
		began := time.Now()
		runnertest.Drain(t, r)
		testkit.Equal(t, "calls", calls, 2)
		testkit.Equal(t, "time until the second call has returned", time.Since(began).Round(time.Second), 70*time.Second)
		testkit.Equal(t, "states", states(t, r, []int64{2, 4}),
			[]string{"failed ran for longer than 1m0s; the function ignored the end of its context", "completed"})
		time.Sleep(time.Hour) // wait until the first call of the function has returned
	}, runner.Options{Concurrency: 1, StuckAfter: 10 * time.Second, ReleaseStuck: true})
}

func TestABatchFunctionThatDoesNotReturnIsLogged(t *testing.T) {
	for after, want := range map[time.Duration]int{9 * time.Second: 0, time.Minute: 1} {
		var log bytes.Buffer
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			r.Register(bulk.BatchHandler(2, func(_ context.Context, tasks []jobs.BatchTask[int]) error {
				endAll(tasks)
				time.Sleep(after)
				return nil
			}))
			enqueueNumbers(t, r, 2)
			runnertest.Drain(t, r)
			counts, err := r.CountByState(t.Context(), jobs.Filter{})
			testkit.NoError(t, err)
			testkit.Equal(t, "tasks by state", counts, map[jobs.State]int{jobs.Completed: 2})
		}, runner.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		got := strings.Count(log.String(), `level=WARN msg="stuck: the function of a batch runs although all its tasks have ended" `+
			"job=bulk queue=default since=10s")
		testkit.Equal(t, "warnings about a function that returns "+after.String()+" after the last end", got, want)
	}
}

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// callLog lists the calls of a bulk function: the time since the start of the
// test, and the inputs.
type callLog struct {
	began time.Time
	calls []string
}

func newCallLog() *callLog { return &callLog{began: time.Now()} }

func (l *callLog) add(tasks []jobs.BulkTask[int]) {
	l.calls = append(l.calls, fmt.Sprint(time.Since(l.began).Round(10*time.Millisecond), " ", inputs(tasks)))
}

func TestBatchWaitsUntilItIsFullOrItsFirstTaskHasWaited(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		l := newCallLog()
		h := bulk.BulkHandler(3, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
			l.add(tasks)
			return nil
		})
		h.BulkWait = 2 * time.Second
		r.Register(h)
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 4})
		// A task is due every 500 ms. The third task fills a batch at 1 s. The
		// fourth task starts after 2 s of waiting, at 3.5 s.
		for n := range 5 {
			runnerkit.Enqueue(t, r, bulk.With(n))
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		stop()
		runnerkit.Enqueue(t, r, bulk.With(9))
		runnertest.RunDue(t, r, runner.WorkOptions{Concurrency: 4}) // a single task does not fill a batch, so it starts after 2 s
		testkit.Equal(t, "calls", l.calls, []string{"1s [0 1 2]", "3.5s [3 4]", "1m4.5s [9]"})
	}, runner.Options{})
}

// TestRateLimitsCallsOfBatchFunction limits the calls of a bulk function to
// two a second, like a mail provider that allows two requests a second.
func TestRateLimitsCallsOfBatchFunction(t *testing.T) {
	for name, test := range map[string]struct {
		options runner.WorkOptions
		wait    time.Duration
		want    []string
	}{
		"at once":      {runner.WorkOptions{Concurrency: 4}, 0, []string{"0s [1]", "500ms [2 3 4]", "1s [5 6 7 8]"}},
		"full batches": {runner.WorkOptions{Concurrency: 4}, time.Second, []string{"390ms [1 2 3 4]", "910ms [5 6 7 8]"}},
		"one slot": {runner.WorkOptions{Concurrency: 1, Queues: []jobs.QueueMax{{Name: "default", Max: 1}}}, 0,
			[]string{"0s [1]", "500ms [2 3 4]", "1s [5 6 7 8]"}},
	} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			limit := admin.Limit{Target: admin.Target{Kind: admin.JobTarget, Name: "bulk"}, Rate: 2, Per: time.Second, Burst: 1}
			testkit.NoError(t, admin.SetLimit(t.Context(), r, limit))
			l := newCallLog()
			h := bulk.BulkHandler(4, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
				l.add(tasks)
				return nil
			})
			h.BulkWait = test.wait
			r.Register(h)
			stop := runnerkit.Work(t, r, test.options)
			for n := range 8 {
				runnerkit.Enqueue(t, r, bulk.With(n+1))
				time.Sleep(130 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			stop()
			testkit.Equal(t, name+": calls", l.calls, test.want)
		})
	}
}

// TestFunctionThatWaitsForItsServerKeepsOrder sends readings in order to a
// server that is away for some hours. The function waits for the server, so the
// tasks have one attempt each.
func TestFunctionThatWaitsForItsServerKeepsOrder(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var sent []int
		back := time.Now().Add(3 * time.Hour)
		r.Register(bulk.BulkHandler(100, func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			for time.Now().Before(back) {
				select {
				case <-ctx.Done():
					return jobs.RetryIn(0, errors.New("the server is not there"))
				case <-time.After(10 * time.Second):
				}
			}
			for _, task := range tasks {
				sent = append(sent, task.Input)
			}
			return nil
		}))
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		var want []int
		for n := range 200 {
			runnerkit.Enqueue(t, r, bulk.With(n))
			want = append(want, n)
			time.Sleep(time.Minute)
		}
		stop()
		runnertest.RunDue(t, r, runner.WorkOptions{Concurrency: 1})
		testkit.Equal(t, "readings that were sent", sent, want)
		for _, id := range []int64{1, 100, 200} {
			testkit.Equal(t, fmt.Sprintf("attempts of task %d", id), runnerkit.Get(t, r, id).Attempt, 1)
		}
	}, runner.Options{Sync: runner.SyncFlash})
}

// TestTaskThatIsTriedAgainWithoutDelayKeepsItsPlace sends readings in order to
// a server that often fails. A reading whose request failed must be sent again
// before later readings.
func TestTaskThatIsTriedAgainWithoutDelayKeepsItsPlace(t *testing.T) {
	away := errors.New("the server is not there")
	for name, again := range map[string]error{"RetryIn": jobs.RetryIn(0, away), "Snooze": jobs.Snooze(0)} {
		t.Run(name, func(t *testing.T) { triedAgain(t, again) })
	}
}

func triedAgain(t *testing.T, again error) {
	t.Helper()
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		l, calls := newCallLog(), 0
		send := func(ctx context.Context, tasks []jobs.BulkTask[int]) error {
			l.add(tasks)
			if calls++; calls%2 == 0 {
				return nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			return again
		}
		r.Register(bulk.BulkHandler(3, send))
		enqueueNumbers(t, r, 4)
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1, Grace: -1})
		time.Sleep(15 * time.Second) // tasks 1 to 3 have completed, and the call for task 4 waits for the server
		enqueueNumbers(t, r, 1)
		stop()
		runnertest.RunDue(t, r, runner.WorkOptions{Concurrency: 1, Grace: -1})
		testkit.Equal(t, "calls", l.calls, []string{"0s [1 2 3]", "10s [1 2 3]", "10s [4]", "15s [4 1]"})
		testkit.Equal(t, "attempts of task 4", runnerkit.Get(t, r, 4).Attempt, 1)
	}, runner.Options{})
}

package runner

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest/fault"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// The tests on fake time use bubbles of package testing/synctest. The clock of
// a bubble stands still while any of its goroutines runs, and jumps forward
// when all of them wait. So the tests can check exact times, and an hour takes
// milliseconds.

// fakeTimeTest is a test on fake time. It has a Runner in a bubble, and records
// the calls of the function of the job "work".
type fakeTimeTest struct {
	*testing.T
	*Runner
	disk    *fault.Disk
	options WorkOptions // of work
	began   time.Time
	calls   sync.WaitGroup // goroutines started by after

	mu   sync.Mutex
	runs []run
}

// run is one call of the function of the job "work".
type run struct {
	at   time.Duration // time since the start of the test
	task jobs.Task
}

var work = jobs.DefineResult[string, string]("work", jobs.MaxAttempts(3),
	jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Minute}))

// workFunc is the function that the job "work" calls.
type workFunc func(ctx context.Context, f *fakeTimeTest, in string) (string, error)

// onFakeTime runs a test on fake time. The job "work" calls do, or does nothing
// if this parameter is nil.
func onFakeTime(t *testing.T, options WorkOptions, do workFunc, test func(f *fakeTimeTest)) {
	t.Helper()
	runOnFakeTime(t, nil, Options{}, options, do, test)
}

// onFakeTimeAndDisk does the same as onFakeTime, on a simulated disk whose
// operations the test can make fail.
func onFakeTimeAndDisk(t *testing.T, do workFunc, test func(f *fakeTimeTest)) {
	t.Helper()
	runOnFakeTime(t, fault.Under, Options{}, WorkOptions{}, do, test)
}

func runOnFakeTime(t *testing.T, under func(testing.TB, string) *fault.Disk, options Options, working WorkOptions, do workFunc,
	test func(f *fakeTimeTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		f := &fakeTimeTest{T: t, options: working.withDefaults(options.Sync), began: time.Now()}
		if under != nil {
			f.disk = under(t, path)
		}
		r, err := Open(db.Alone(t.Context()), path, options)
		if err != nil {
			t.Fatal(err)
		}
		f.Runner = r
		r.Register(work.Handler(func(ctx context.Context, in string) (string, error) {
			task, _ := TaskFromContext(ctx)
			f.mu.Lock()
			f.runs = append(f.runs, run{time.Since(f.began), task})
			f.mu.Unlock()
			if do == nil {
				return in, nil
			}
			return do(ctx, f, in)
		}))
		test(f)
		f.calls.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// enqueue adds a task and returns its id.
func (f *fakeTimeTest) enqueue(spec jobs.Spec) int64 {
	f.Helper()
	task, err := f.Enqueue(f.Context(), spec)
	if err != nil {
		f.Fatal(err)
	}
	return task.ID
}

// work runs the worker for the duration d, and then waits until the worker has
// stopped.
func (f *fakeTimeTest) work(d time.Duration) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), d)
	defer cancel()
	if err := f.Work(ctx, f.options); err != nil {
		f.Fatal(err)
	}
}

// after starts a goroutine that calls a function at time d after the start of
// the test. The test waits for the goroutine at its end.
func (f *fakeTimeTest) after(d time.Duration, call func()) {
	f.calls.Go(func() {
		time.Sleep(d - time.Since(f.began))
		call()
	})
}

// want checks the state and the reason of a task, and returns the task.
func (f *fakeTimeTest) want(id int64, state jobs.State, reason jobs.Reason) jobs.Task {
	f.Helper()
	task, err := f.Get(f.Context(), id)
	if err != nil || task.State != state || task.Reason != reason {
		f.Errorf("after %v task %d is %s (%s, %s), want %s (%s): %v", time.Since(f.began), id, task.State, task.Reason, task.Error, state,
			reason, err)
	}
	return task
}

// wantRuns checks the times at which the function of the job "work" was called.
// A call may be up to two milliseconds late, because times in the file are
// whole milliseconds.
func (f *fakeTimeTest) wantRuns(times ...time.Duration) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	ok := len(f.runs) == len(times)
	for i := range min(len(f.runs), len(times)) {
		ok = ok && f.runs[i].at >= times[i] && f.runs[i].at <= times[i]+2*time.Millisecond
	}
	if !ok {
		var at []time.Duration
		for _, r := range f.runs {
			at = append(at, r.at)
		}
		f.Errorf("ran after %v, want %v", at, times)
	}
}

func TestTaskDueInHourRunsAfterHour(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.In(time.Hour)))
		f.work(2 * time.Hour)
		f.wantRuns(time.Hour)
		f.want(id, jobs.Completed, "")
	})
}

func TestTasksEnqueuedDuringWorkRunWhenTheyAreDue(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		f.enqueue(work.With("late", jobs.In(3*time.Hour)))
		f.after(time.Hour, func() { f.enqueue(work.With("now")) })
		f.after(2*time.Hour, func() { f.enqueue(work.With("soon", jobs.In(time.Minute))) })
		f.work(4 * time.Hour)
		f.wantRuns(time.Hour, 2*time.Hour+time.Minute, 3*time.Hour)
	})
}

func TestWorkerStartsTasksWhenPauseEnds(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		f.after(time.Hour, func() {
			at := now()
			testkit.NoError(f.T, f.store.Pause(f.Context(), []string{db.AllQueues}, db.Pause{At: at, Until: at.Add(2 * time.Hour)}))
			f.store.Notify()
			f.enqueue(work.With("x"))
		})
		f.after(2*time.Hour, func() {
			f.enqueue(work.With("y"))
			pauses, err := f.store.Pauses(f.Context(), now())
			if until := f.began.Add(3 * time.Hour).Truncate(time.Millisecond); err != nil || !pauses[db.AllQueues].Until.Equal(until) {
				f.Errorf("got %+v, want a pause until %v: %v", pauses, until, err)
			}
		})
		f.work(4 * time.Hour)
		f.wantRuns(3*time.Hour, 3*time.Hour)
	})
}

func TestRetryStartsAfterItsBackoff(t *testing.T) {
	fail := func(context.Context, *fakeTimeTest, string) (string, error) { return "", errors.New("no route") }
	onFakeTime(t, WorkOptions{}, fail, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		backoff := jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Minute, Max: time.Hour}
		first := taskspec.Delay(backoff, id, 1)
		f.after(first-time.Second, func() { f.want(id, jobs.Retrying, jobs.ReasonError) })
		f.work(time.Hour)
		f.wantRuns(0, first, first+taskspec.Delay(backoff, id, 2))
		got := f.want(id, jobs.Failed, jobs.ReasonError)
		testkit.Equal(f.T, "attempt", got.Attempt, 3)
		testkit.Equal(f.T, "error", got.Error, "no route")
	})
}

func TestRetryInSetsDelay(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		if task, _ := TaskFromContext(ctx); task.Attempt == 1 {
			return "", jobs.RetryIn(5*time.Hour, errors.New("later"))
		}
		return "", nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		f.work(6 * time.Hour)
		f.wantRuns(0, 5*time.Hour)
		f.want(id, jobs.Completed, "")
	})
}

func TestSnoozeCountsNoAttempt(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(_ context.Context, f *fakeTimeTest, _ string) (string, error) {
		if time.Since(f.began) < 3*time.Hour {
			return "", jobs.Snooze(time.Hour)
		}
		return "done", nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.MaxAttempts(1)))
		f.after(90*time.Minute, func() { f.want(id, jobs.Scheduled, "") })
		f.work(5 * time.Hour)
		got := f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "attempt", got.Attempt, 1)
		testkit.Equal(f.T, "result", string(got.Result), `"done"`)
		for _, r := range f.runs {
			testkit.Equal(f.T, "attempt of the run", r.task.Attempt, 1)
		}
		if n := len(f.runs); n != 4 && n != 5 {
			f.Errorf("got %d runs, want 4 or 5", n)
		}
	})
}

// TestTasksThatComeBackAtOnceGetPause checks functions that never stop
// snoozing, for a time between 0 and 100 ms, and one that never stops retrying.
// Work with UntilEmpty and RunDue must return.
func TestTasksThatComeBackAtOnceGetPause(t *testing.T) {
	_, badArgs := jobs.Define[int]("x").Args(jobs.Task{Job: "x", Args: []byte(`"one"`)})
	for _, again := range []error{jobs.Snooze(0), jobs.Snooze(1), jobs.Snooze(99 * time.Millisecond),
		jobs.RetryIn(0, errors.New("busy")), jobs.RetryIn(-time.Hour, errors.New("busy")), jobs.RetryIn(0, badArgs)} {
		onFakeTime(t, WorkOptions{}, func(context.Context, *fakeTimeTest, string) (string, error) {
			return "", again
		}, func(f *fakeTimeTest) {
			id := f.enqueue(work.With("x", jobs.MaxAttempts(1_000_000)))
			f.work(10 * time.Second)
			if n := len(f.runs); n < 90 || n > 115 {
				f.Errorf("%T %v: got %d runs in 10 s, want about 100", again, again, n)
			}
			task, err := f.Get(f.Context(), id)
			if err != nil || task.State != jobs.Scheduled && task.State != jobs.Retrying {
				f.Errorf("%T %v: got state %q and error %v, want one that waits", again, again, task.State, err)
			}
		})
	}
}

// An attempt that takes its time is no spin: its task keeps its place.
func TestSlowAttemptKeepsPlaceOfItsTask(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(context.Context, *fakeTimeTest, string) (string, error) {
		time.Sleep(100 * time.Millisecond)
		return "", jobs.Snooze(0)
	}, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		f.work(10 * time.Second)
		if n := len(f.runs); n < 95 || n > 105 {
			f.Errorf("got %d runs in 10 s, want about 100", n)
		}
	})
}

func TestNegativeSnoozeIsError(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(context.Context, *fakeTimeTest, string) (string, error) {
		return "", jobs.Snooze(-time.Second)
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.MaxAttempts(3), jobs.WithBackoff(jobs.Backoff{})))
		f.work(time.Minute)
		testkit.Equal(f.T, "error", f.want(id, jobs.Failed, jobs.ReasonError).Error, "snoozed for the negative time -1s")
	})
}

func TestTaskExpiresOnTimeWhenNoWorkerRunsItsJob(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(jobs.Define[int]("nobody").With(1, jobs.ExpiresIn(time.Hour)))
		f.after(time.Hour-time.Second, func() { f.want(id, jobs.Pending, "") })
		f.after(time.Hour+time.Second, func() { f.want(id, jobs.Cancelled, jobs.ReasonExpired) })
		f.work(2 * time.Hour)
	})
}

// TestBusyWorkerHandlesDueAndExpiredTasksOnTime checks a worker without free
// slots. The worker makes due tasks pending and cancels expired tasks in time,
// and its loop does not spin.
func TestBusyWorkerHandlesDueAndExpiredTasksOnTime(t *testing.T) {
	onFakeTime(t, WorkOptions{Concurrency: 1}, func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		if in == "long" {
			time.Sleep(3 * time.Hour)
		}
		return "", nil
	}, func(f *fakeTimeTest) {
		f.enqueue(work.With("long"))
		expires := f.enqueue(work.With("x", jobs.In(time.Minute), jobs.ExpiresIn(time.Hour)))
		due := f.enqueue(work.With("y", jobs.In(time.Hour)))
		f.after(2*time.Minute, func() { f.want(expires, jobs.Pending, "") })
		f.after(2*time.Hour, func() {
			f.want(expires, jobs.Cancelled, jobs.ReasonExpired)
			f.want(due, jobs.Pending, "")
		})
		f.work(4 * time.Hour)
		f.wantRuns(0, 3*time.Hour)
	})
}

func TestTimeoutEndsContextOfFunction(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		deadline, ok := ctx.Deadline()
		testkit.Equal(f.T, "there is a deadline", ok, true)
		testkit.Equal(f.T, "time until the deadline", time.Until(deadline), 30*time.Second)
		child, stop := context.WithCancel(ctx)
		defer stop()
		<-child.Done()
		testkit.ErrorIs(f.T, ctx.Err(), context.DeadlineExceeded)
		testkit.ErrorIs(f.T, child.Err(), context.DeadlineExceeded)
		testkit.Equal(f.T, "remainder of the running time", time.Since(f.began).Round(time.Millisecond)%(30*time.Second), 0)
		testkit.ErrorIs(f.T, context.Cause(ctx), jobs.ErrTimeout)
		if in == "in spite of it" {
			return in, nil
		}
		return "", ctx.Err()
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.Timeout(30*time.Second), jobs.MaxAttempts(1)))
		done := f.enqueue(work.With("in spite of it", jobs.Timeout(30*time.Second)))
		f.work(time.Hour)
		got := f.want(id, jobs.Failed, jobs.ReasonTimeout)
		testkit.Equal(f.T, "duration", got.Duration.Round(time.Millisecond), 30*time.Second)
		testkit.Contains(f.T, got.Error, "30s")
		f.want(done, jobs.Completed, "")
	})
}

func TestUntilEmptyLeavesTasksThatAreDueLater(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		f.enqueue(work.With("a"))
		later := f.enqueue(work.With("b", jobs.In(time.Hour)))
		if err := f.Work(f.Context(), WorkOptions{UntilEmpty: true}); err != nil {
			f.Fatal(err)
		}
		f.wantRuns(0)
		f.want(later, jobs.Scheduled, "")
	})
}

func TestCancelStopsRunningFunctionOfSameProcess(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		<-ctx.Done()
		testkit.ErrorIs(f.T, context.Cause(ctx), jobs.ErrCancelled)
		testkit.Equal(f.T, "time of the cancellation", time.Since(f.began), time.Minute)
		return "", ctx.Err()
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		f.after(time.Minute, func() {
			moved, err := f.Cancel(f.Context(), []int64{id}, CancelOptions{Reason: "enough"})
			testkit.NoError(f.T, err)
			testkit.Equal(f.T, "state after the cancel request", moved[0].State, jobs.Running)
		})
		f.work(time.Hour)
		if got := f.want(id, jobs.Cancelled, jobs.ReasonCancelled); !strings.HasSuffix(got.Error, ": enough") {
			f.Errorf("got error %q, want one that ends with the reason \"enough\"", got.Error)
		}
	})
}

func TestResultThatIsTooLargeFailsOnlyItsTask(t *testing.T) {
	onFakeTime(t, WorkOptions{Concurrency: 2}, func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		if in == "huge" {
			return strings.Repeat("x", usercode.MaxResult), nil
		}
		return in, nil
	}, func(f *fakeTimeTest) {
		huge := f.enqueue(work.With("huge", jobs.MaxAttempts(1)))
		fine := f.enqueue(work.With("fine"))
		f.work(time.Minute)
		f.want(huge, jobs.Failed, jobs.ReasonError)
		f.want(fine, jobs.Completed, "")
	})
}

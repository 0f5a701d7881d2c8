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

	"example.com/runner/db/dbtest/fault"
	"example.com/runner/jobs"
)

// The tests on fake time use bubbles of testing/synctest. The clock of a bubble stands still while a goroutine runs, and jumps when all
// goroutines wait. So the tests can check exact times, and an hour takes milliseconds.

// bubble is a Runner in a bubble of fake time, with the calls of its function.
type bubble struct {
	*testing.T
	*Runner
	disk  *fault.Disk
	began time.Time
	looks sync.WaitGroup // functions that within has started

	mu   sync.Mutex
	runs []run
}

// run is one call of the function.
type run struct {
	at   time.Duration // since the test began
	task jobs.Task
}

var work = jobs.DefineResult[string, string]("work", jobs.MaxAttempts(3),
	jobs.Retry(jobs.Backoff{Strategy: jobs.Fixed, Delay: time.Minute}))

// fake runs a test on fake time. do is the function of the job work; nil means a function that does nothing.
func fake(t *testing.T, options Options, do func(ctx context.Context, b *bubble, in string) (string, error), test func(b *bubble)) {
	t.Helper()
	fakeOn(t, nil, options, do, test)
}

// fakeOnDisk is fake with a disk whose behaviour the test decides.
func fakeOnDisk(t *testing.T, do func(ctx context.Context, b *bubble, in string) (string, error), test func(b *bubble)) {
	t.Helper()
	fakeOn(t, fault.Under, Options{}, do, test)
}

func fakeOn(t *testing.T, under func(testing.TB, string) *fault.Disk, options Options,
	do func(ctx context.Context, b *bubble, in string) (string, error), test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		options.Alone = true
		path := filepath.Join(t.TempDir(), "test.db")
		b := &bubble{T: t, began: time.Now()}
		if under != nil {
			b.disk = under(t, path)
		}
		r, err := Open(t.Context(), path, options)
		if err != nil {
			t.Fatal(err)
		}
		b.Runner = r
		r.Register(work.Handler(func(ctx context.Context, in string) (string, error) {
			task, _ := TaskFrom(ctx)
			b.mu.Lock()
			b.runs = append(b.runs, run{time.Since(b.began), task})
			b.mu.Unlock()
			if do == nil {
				return in, nil
			}
			return do(ctx, b, in)
		}))
		test(b)
		b.looks.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (b *bubble) enqueue(spec jobs.Spec) int64 {
	b.Helper()
	task, err := b.Enqueue(b.Context(), spec)
	if err != nil {
		b.Fatal(err)
	}
	return task.ID
}

// work runs the worker for a while and then drains it.
func (b *bubble) work(d time.Duration) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), d)
	defer cancel()
	if err := b.Work(ctx); err != nil {
		b.Fatal(err)
	}
}

// within calls look after d, while Work runs. The bubble waits for look.
func (b *bubble) within(d time.Duration, look func()) {
	b.looks.Go(func() {
		time.Sleep(d - time.Since(b.began))
		look()
	})
}

func (b *bubble) want(id int64, state jobs.State, reason jobs.Reason) jobs.Task {
	b.Helper()
	task, err := b.Get(b.Context(), id)
	if err != nil || task.State != state || task.Reason != reason {
		b.Errorf("after %v task %d is %s (%s, %s), want %s (%s): %v", time.Since(b.began), id, task.State, task.Reason, task.Error, state,
			reason, err)
	}
	return task
}

// ran checks when the function was called. A call may be up to two milliseconds late, because times in the file are whole milliseconds.
func (b *bubble) ran(times ...time.Duration) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := len(b.runs) == len(times)
	for i := range min(len(b.runs), len(times)) {
		ok = ok && b.runs[i].at >= times[i] && b.runs[i].at <= times[i]+2*time.Millisecond
	}
	if !ok {
		var at []time.Duration
		for _, r := range b.runs {
			at = append(at, r.at)
		}
		b.Errorf("ran after %v, want %v", at, times)
	}
}

func TestATaskDueInAnHourRunsThen(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.In(time.Hour)))
		b.work(2 * time.Hour)
		b.ran(time.Hour)
		b.want(id, jobs.Completed, "")
	})
}

func TestATaskThatIsEnqueuedMeanwhileRunsAtOnceAndADueOneInTime(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		b.enqueue(work.With("late", jobs.In(3*time.Hour)))
		b.within(time.Hour, func() { b.enqueue(work.With("now")) })
		b.within(2*time.Hour, func() { b.enqueue(work.With("soon", jobs.In(time.Minute))) })
		b.work(4 * time.Hour)
		b.ran(time.Hour, 2*time.Hour+time.Minute, 3*time.Hour)
	})
}

func TestARetryComesWhenItsBackoffSays(t *testing.T) {
	fake(t, Options{}, func(context.Context, *bubble, string) (string, error) { return "", errors.New("no route") }, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		backoff := jobs.Backoff{Strategy: jobs.Fixed, Delay: time.Minute, Max: time.Hour}
		first := backoff.After(id, 1)
		b.within(first-time.Second, func() { b.want(id, jobs.Retrying, jobs.ReasonError) })
		b.work(time.Hour)
		b.ran(0, first, first+backoff.After(id, 2))
		if got := b.want(id, jobs.Failed, jobs.ReasonError); got.Attempt != 3 || got.Error != "no route" {
			b.Errorf(`got %+v; want Attempt = 3, Error = "no route"`, got)
		}
	})
}

func TestRetryInSaysItself(t *testing.T) {
	fake(t, Options{}, func(ctx context.Context, b *bubble, _ string) (string, error) {
		if task, _ := TaskFrom(ctx); task.Attempt == 1 {
			return "", jobs.RetryIn(5*time.Hour, errors.New("later"))
		}
		return "", nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		b.work(6 * time.Hour)
		b.ran(0, 5*time.Hour)
		b.want(id, jobs.Completed, "")
	})
}

func TestASnoozeIsNoAttempt(t *testing.T) {
	fake(t, Options{}, func(_ context.Context, b *bubble, _ string) (string, error) {
		if time.Since(b.began) < 3*time.Hour {
			return "", jobs.Snooze(time.Hour)
		}
		return "done", nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.MaxAttempts(1)))
		b.within(90*time.Minute, func() { b.want(id, jobs.Scheduled, "") })
		b.work(5 * time.Hour)
		if got := b.want(id, jobs.Completed, ""); got.Attempt != 1 || string(got.Result) != `"done"` {
			b.Errorf("got %+v; want Attempt = 1, string(Result) = `\"done\"`", got)
		}
		for _, r := range b.runs {
			if r.task.Attempt != 1 {
				b.Errorf("got %+v, want task.Attempt = 1", r)
			}
		}
		if n := len(b.runs); n != 4 && n != 5 {
			b.Errorf("%d runs", n)
		}
	})
}

func TestATaskExpiresOnTimeWhenNobodyRunsItsJob(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		id := b.enqueue(jobs.Define[int]("nobody").With(1, jobs.ExpiresIn(time.Hour)))
		b.within(time.Hour-time.Second, func() { b.want(id, jobs.Pending, "") })
		b.within(time.Hour+time.Second, func() { b.want(id, jobs.Cancelled, jobs.ReasonExpired) })
		b.work(2 * time.Hour)
	})
}

// TestABusyWorkerStillKeepsTime checks that a worker without free slots makes tasks pending and expired in time, and does not spin.
func TestABusyWorkerStillKeepsTime(t *testing.T) {
	fake(t, Options{Concurrency: 1}, func(_ context.Context, _ *bubble, in string) (string, error) {
		if in == "long" {
			time.Sleep(3 * time.Hour)
		}
		return "", nil
	}, func(b *bubble) {
		b.enqueue(work.With("long"))
		expires := b.enqueue(work.With("x", jobs.In(time.Minute), jobs.ExpiresIn(time.Hour)))
		due := b.enqueue(work.With("y", jobs.In(time.Hour)))
		b.within(2*time.Minute, func() { b.want(expires, jobs.Pending, "") })
		b.within(2*time.Hour, func() {
			b.want(expires, jobs.Cancelled, jobs.ReasonExpired)
			b.want(due, jobs.Pending, "")
		})
		b.work(4 * time.Hour)
		b.ran(0, 3*time.Hour)
	})
}

func TestAFunctionIsToldOfItsTimeout(t *testing.T) {
	fake(t, Options{}, func(ctx context.Context, b *bubble, in string) (string, error) {
		<-ctx.Done()
		if time.Since(b.began).Round(time.Millisecond)%(30*time.Second) != 0 || !errors.Is(context.Cause(ctx), jobs.ErrTimeout) {
			b.Errorf("stopped after %v: %v", time.Since(b.began), context.Cause(ctx))
		}
		if in == "in spite of it" {
			return in, nil
		}
		return "", ctx.Err()
	}, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.Timeout(30*time.Second), jobs.MaxAttempts(1)))
		done := b.enqueue(work.With("in spite of it", jobs.Timeout(30*time.Second)))
		b.work(time.Hour)
		if got := b.want(id, jobs.Failed, jobs.ReasonTimeout); got.Duration.Round(time.Millisecond) != 30*time.Second ||
			!strings.Contains(got.Error, "30s") {
			b.Errorf(`got %+v; want Duration.Round(Millisecond) = 30*Second, Contains(Error, "30s")`, got)
		}
		b.want(done, jobs.Completed, "")
	})
}

func TestWorkUntilEmptyLeavesWhatIsDueLater(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		b.enqueue(work.With("a"))
		later := b.enqueue(work.With("b", jobs.In(time.Hour)))
		if err := b.WorkUntilEmpty(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ran(0)
		b.want(later, jobs.Scheduled, "")
	})
}

func TestCancelReachesARunningFunctionOfThisProcess(t *testing.T) {
	fake(t, Options{}, func(ctx context.Context, b *bubble, _ string) (string, error) {
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), jobs.ErrCancelled) || time.Since(b.began) != time.Minute {
			b.Errorf("after %v: %v", time.Since(b.began), context.Cause(ctx))
		}
		return "", ctx.Err()
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		b.within(time.Minute, func() {
			if moved, err := b.Cancel(b.Context(), []int64{id}, CancelOptions{Reason: "enough"}); err != nil ||
				moved[0].State != jobs.Running {
				b.Errorf("got %+v, %v; want no error, moved[0].State = Running", moved, err)
			}
		})
		b.work(time.Hour)
		if got := b.want(id, jobs.Cancelled, jobs.ReasonCancelled); !strings.HasSuffix(got.Error, ": enough") {
			b.Errorf(`got %+v; want HasSuffix(Error, ": enough")`, got)
		}
	})
}

func TestAResultThatCannotBeKeptFailsItsTaskAlone(t *testing.T) {
	fake(t, Options{Concurrency: 2}, func(_ context.Context, _ *bubble, in string) (string, error) {
		if in == "huge" {
			return strings.Repeat("x", jobs.MaxResult), nil
		}
		return in, nil
	}, func(b *bubble) {
		huge := b.enqueue(work.With("huge", jobs.MaxAttempts(1)))
		fine := b.enqueue(work.With("fine"))
		b.work(time.Minute)
		b.want(huge, jobs.Failed, jobs.ReasonError)
		b.want(fine, jobs.Completed, "")
	})
}

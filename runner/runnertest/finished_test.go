package runnertest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
)

// outcome is a job whose input says how the attempt ends.
var outcome = jobs.Define[string]("outcome", jobs.MaxAttempts(1), jobs.MaxLosses(0))

func runOutcome(_ context.Context, how string) error {
	switch how {
	case "fail":
		return errors.New("bad")
	case "cancel":
		return jobs.Cancel(errors.New("not needed"))
	}
	return nil
}

// collector collects the finished tasks that ConsumeFinished passes to handle.
type collector struct {
	mu   sync.Mutex
	ends []jobs.Task
	err  error // error that handle returns
}

func (c *collector) handle(_ context.Context, task jobs.Task) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, task)
	return c.err
}

// take returns the tasks collected so far, each as "id state reason", and
// forgets them.
func (c *collector) take() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.ends {
		list = append(list, fmt.Sprintf("%d %s %s", t.ID, t.State, t.Reason))
	}
	c.ends = nil
	return list
}

// consume runs ConsumeFinished until the returned function is called, or until
// the test ends.
func consume(t *testing.T, r *runner.Runner, cursor string, handle func(context.Context, jobs.Task) error) (stop func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	done := make(chan error)
	go func() { done <- r.ConsumeFinished(ctx, cursor, handle) }()
	synctest.Wait()
	return func() {
		t.Helper()
		cancel(stopped)
		if err := <-done; !errors.Is(err, stopped) {
			t.Errorf("ConsumeFinished: got %v, want %v", err, stopped)
		}
	}
}

func TestCursorBeginsWhenItIsAdded(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(outcome.Handler(runOutcome))
		finish := func(how string) {
			if _, err := r.Enqueue(t.Context(), outcome.With(how)); err != nil {
				t.Fatal(err)
			}
			runnertest.RunDue(t, r)
		}
		finish("before")
		for range 2 { // the second call of AddCursor changes nothing
			if err := admin.AddCursor(t.Context(), r, "audit"); err != nil {
				t.Fatal(err)
			}
			finish("fail")
		}
		var c collector
		consume(t, r, "audit", c.handle)()
		if got, want := c.take(), []string{"2 failed error", "3 failed error"}; !slices.Equal(got, want) {
			t.Errorf("got ends %q, want %q", got, want)
		}
		if err := admin.AddCursor(t.Context(), r, ""); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("got %v for a cursor without a name, want %v", err, jobs.ErrInvalid)
		}
	})
}

func TestConsumeFinishedGetsEndsOfEveryKind(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(outcome.Handler(func(ctx context.Context, how string) error {
			if how == "crash" {
				runnertest.Crash(ctx, r)
			}
			return runOutcome(ctx, how)
		}))
		var c collector
		stop := consume(t, r, "audit", c.handle)
		enqueue := func(how string, options ...jobs.Option) int64 {
			task, err := r.Enqueue(t.Context(), outcome.With(how, options...))
			if err != nil {
				t.Fatal(err)
			}
			return task.ID
		}
		want := func(ends ...string) {
			t.Helper()
			synctest.Wait()
			if got := c.take(); !slices.Equal(got, ends) {
				t.Errorf("got ends %q, want %q", got, ends)
			}
		}
		enqueue("ok")
		failing := enqueue("fail")
		enqueue("ok", jobs.DependsOn(failing))
		enqueue("cancel")
		runnertest.RunDue(t, r)
		want("1 completed ", "2 failed error", "3 cancelled dependency", "4 cancelled cancelled")

		waiting := enqueue("ok", jobs.In(time.Hour))
		enqueue("ok", jobs.DependsOn(waiting))
		if _, err := r.Cancel(t.Context(), []int64{waiting}, runner.CancelOptions{}); err != nil {
			t.Fatal(err)
		}
		want("5 cancelled cancelled", "6 cancelled dependency")

		enqueue("ok", jobs.ExpiresIn(time.Minute))
		runnertest.Advance(t, 2*time.Minute)
		runnertest.RunDue(t, r)
		want("7 cancelled expired")

		enqueue("ok")
		runnertest.CrashAfterClaim(t, r, 1)
		runnertest.RunDue(t, r)
		want("8 failed lost")

		enqueue("crash")
		runnertest.RunDue(t, r)
		want("9 failed lost")

		stop()
		enqueue("ok") // tasks that finish while no process calls ConsumeFinished are delivered later
		runnertest.RunDue(t, r)
		want()
		defer consume(t, r, "audit", c.handle)()
		want("10 completed ")

		if _, err := r.Retry(t.Context(), []int64{2}, runner.RetryOptions{}); err != nil {
			t.Fatal(err)
		}
		runnertest.RunDue(t, r)
		want("2 failed error")
	})
}

func TestConsumeFinishedRepeatsEndWhoseHandlerFailed(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(outcome.Handler(runOutcome))
		began := time.Now()
		var calls []time.Duration
		var c collector
		defer consume(t, r, "audit", func(ctx context.Context, task jobs.Task) error {
			c.mu.Lock()
			calls = append(calls, time.Since(began).Round(time.Second))
			down := len(calls) < 4
			c.mu.Unlock()
			if down {
				return errors.New("mail server is down")
			}
			return c.handle(ctx, task)
		})()
		if _, err := r.EnqueueSeq(t.Context(), slices.Values([]jobs.Spec{outcome.With("ok"), outcome.With("ok")})); err != nil {
			t.Fatal(err)
		}
		runnertest.RunDue(t, r)
		runnertest.Advance(t, time.Minute)
		if got, want := c.take(), []string{"1 completed ", "2 completed "}; !slices.Equal(got, want) {
			t.Errorf("got ends %q, want %q", got, want)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 7 * time.Second}; !slices.Equal(calls, want) {
			t.Errorf("got calls at %v, want %v", calls, want)
		}
	})
}

func TestOneOfSeveralConsumersDelivers(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(outcome.Handler(runOutcome))
		other := runnertest.Reopen(t, r)
		var first, second collector
		hangs := true // whether the first consumer still has to hang once, as if its process were suspended
		stopFirst := consume(t, r, "audit", func(ctx context.Context, task jobs.Task) error {
			if hangs {
				hangs = false
				time.Sleep(10 * time.Second)
			}
			return first.handle(ctx, task)
		})
		defer consume(t, other, "audit", second.handle)()
		for range 3 {
			if _, err := r.Enqueue(t.Context(), outcome.With("ok")); err != nil {
				t.Fatal(err)
			}
		}
		runnertest.RunDue(t, r)
		runnertest.Advance(t, time.Minute)
		got := append(first.take(), second.take()...)
		slices.Sort(got)
		if want := []string{"1 completed ", "2 completed ", "3 completed "}; !slices.Equal(got, want) {
			t.Errorf("got ends %q, want %q", got, want)
		}
		stopFirst()
		if _, err := r.Enqueue(t.Context(), outcome.With("ok")); err != nil {
			t.Fatal(err)
		}
		runnertest.RunDue(t, r)
		runnertest.Advance(t, 2*time.Second)
		if got, want := second.take(), []string{"4 completed "}; !slices.Equal(got, want) {
			t.Errorf("after the first consumer has stopped: got ends %q, want %q", got, want)
		}
	})
}

func TestRemoveCursorEndsConsumeFinished(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var c collector
		done := make(chan error)
		go func() { done <- r.ConsumeFinished(t.Context(), "audit", c.handle) }()
		synctest.Wait()
		if err := admin.RemoveCursor(t.Context(), r, "audit"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("ConsumeFinished: got %v, want %v", err, jobs.ErrNotFound)
		}
		if err := admin.RemoveCursor(t.Context(), r, "audit"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("RemoveCursor: got %v, want %v", err, jobs.ErrNotFound)
		}
		for name, call := range map[string]func() error{
			"empty name":  func() error { return r.ConsumeFinished(t.Context(), "", c.handle) },
			"nil handler": func() error { return r.ConsumeFinished(t.Context(), "audit", nil) },
		} {
			if err := call(); !errors.Is(err, jobs.ErrInvalid) {
				t.Errorf("%s: got %v, want %v", name, err, jobs.ErrInvalid)
			}
		}
		go func() { done <- r.ConsumeFinished(t.Context(), "audit", c.handle) }()
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, jobs.ErrClosed) {
			t.Errorf("after Close: got %v, want %v", err, jobs.ErrClosed)
		}
	})
}

// TestNoEndIsMissed enqueues and runs tasks while calls of ConsumeFinished
// receive their ends. The test makes random writes fail before or after their
// commits. It ends the calls of ConsumeFinished at random points, and may make
// the last write of a call fail, as if its process were killed. In the end,
// ConsumeFinished must have delivered each finished task at least once.
func TestNoEndIsMissed(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
				r.Register(outcome.Handler(runOutcome))
				random := rand.New(rand.NewPCG(seed, 0))
				inject := func(kind int) {
					switch kind {
					case 0:
						runnertest.FailBeforeCommit(t, r)
					case 1:
						runnertest.FailAfterCommit(t, r)
					}
				}
				fault := func() { inject(random.IntN(3)) }
				var c collector
				consume(t, r, "audit", c.handle)() // ConsumeFinished creates the cursor and stops
				for range 15 {
					for range random.IntN(4) {
						options := []jobs.Option{jobs.ExpiresIn(time.Duration(random.IntN(2)) * time.Hour)}
						how := []string{"ok", "fail", "cancel"}[random.IntN(3)]
						_, _ = r.Enqueue(t.Context(), outcome.With(how, options...)) // may fail because of a fault
					}
					calls, dies, kind := 0, random.IntN(6), random.IntN(3)
					ctx, kill := context.WithCancel(t.Context())
					done := make(chan error)
					go func() {
						done <- r.ConsumeFinished(ctx, "audit", func(ctx context.Context, task jobs.Task) error {
							if calls++; calls == dies {
								kill()
								inject(kind)
								return ctx.Err()
							}
							return c.handle(ctx, task)
						})
					}()
					fault()
					if random.IntN(2) == 0 {
						_ = r.Work(t.Context(), runner.WorkOptions{Concurrency: 1, UntilEmpty: true}) // may fail because of a fault
					}
					fault()
					runnertest.Advance(t, time.Duration(random.IntN(5000))*time.Millisecond)
					kill()
					<-done
				}
				// Call Work twice, because the last fault may end the first
				// call. A call takes longer than a lease, so that the worker
				// also runs the tasks that an ended worker has claimed.
				for range 2 {
					ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
					_ = r.Work(ctx, runner.WorkOptions{Concurrency: 1})
					stop()
				}
				stop := consume(t, r, "audit", c.handle)
				runnertest.Advance(t, time.Minute)
				stop()
				tasks, err := r.List(t.Context(), jobs.Filter{OldestFirst: true})
				if err != nil {
					t.Fatal(err)
				}
				delivered := map[int64]int{}
				for _, end := range c.ends {
					delivered[end.ID]++
				}
				for _, task := range tasks {
					if !task.State.Finished() || delivered[task.ID] == 0 {
						t.Errorf("task %d is %s: got %d deliveries, want at least one", task.ID, task.State, delivered[task.ID])
					}
				}
			})
		})
	}
}

func TestEndsAreDeliveredToAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	open := func() *runner.Runner {
		r, err := runner.Open(t.Context(), path, runner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	consumer, worker := open(), open()
	defer consumer.Close()
	defer worker.Close()
	worker.Register(outcome.Handler(runOutcome))
	delivered := make(chan jobs.Task, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- consumer.ConsumeFinished(ctx, "audit", func(_ context.Context, task jobs.Task) error { delivered <- task; return nil })
	}()
	for { // the first call of ConsumeFinished misses the tasks that finish before it begins, so enqueue tasks until it delivers one
		if _, err := worker.Enqueue(t.Context(), outcome.With("ok")); err != nil {
			t.Fatal(err)
		}
		if err := worker.Work(t.Context(), runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
			t.Fatal(err)
		}
		select {
		case task := <-delivered:
			if task.State != jobs.Completed {
				t.Errorf("got %+v, want a completed task", task)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestCompletedStepsAreNotRepeated(t *testing.T) {
	charged, shipped := 0, 0
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		receipt, err := Step(ctx, "charge", func(context.Context) (map[string]int, error) {
			charged++
			return map[string]int{"receipt": charged}, nil
		})
		if err != nil {
			return "", err
		}
		testkit.Equal(f.T, "receipt", receipt["receipt"], 1)
		_, err = Step(ctx, "ship", func(context.Context) (any, error) {
			if shipped++; shipped < 3 {
				return nil, errors.New("no parcel service")
			}
			return nil, nil
		})
		return in, err
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		f.work(4 * time.Minute)
		task := f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "charges", charged, 1)
		testkit.Equal(f.T, "attempts to ship", shipped, 3)
		steps, err := f.store.Steps(f.Context(), id)
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "steps", steps, 2)
		testkit.Equal(f.T, "name of the first step", steps[0].Name, "charge")
		testkit.Equal(f.T, "value of the first step", string(steps[0].Value), `{"receipt":1}`)
		testkit.Equal(f.T, "value of the second step", string(steps[1].Value), "null")
		testkit.Equal(f.T, "time of the first step", steps[0].At, f.began.UTC())
		testkit.Equal(f.T, "generation after the second step", steps[1].GenerationID+1, task.GenerationID)
	})
}

func TestSleepReleasesSlot(t *testing.T) {
	before, after := 0, 0
	onFakeTime(t, WorkOptions{Concurrency: 1}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		if in == "other" {
			return "", nil
		}
		if _, err := Step(ctx, "before", func(context.Context) (int, error) { before++; return before, nil }); err != nil {
			return "", err
		}
		if err := Sleep(ctx, "cool-off", 10*time.Minute); err != nil {
			during := func(context.Context) (int, error) {
				f.Error("got a call of a step during the sleep, want none")
				return 0, nil
			}
			_, again := Step(ctx, "while it sleeps", during)
			testkit.Equal(f.T, "error of a step during the sleep", again, err)
			return "", err
		}
		after++
		return "", Sleep(ctx, "none", 0)
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("sleeper"))
		f.enqueue(work.With("other"))
		f.after(time.Minute, func() {
			f.want(id, jobs.Scheduled, "")
			// Retry makes the task due during its sleep, but the next attempt
			// then continues the same sleep
			if _, err := f.Retry(f.Context(), []int64{id}, RetryOptions{}); err != nil {
				f.Error(err)
			}
		})
		f.work(3 * time.Minute)
		f.wantRuns(0, 0, time.Minute)
		f.work(10 * time.Minute) // a second call of Work continues the task
		f.wantRuns(0, 0, time.Minute, 10*time.Minute)
		testkit.Equal(f.T, "attempt", f.want(id, jobs.Completed, "").Attempt, 1)
		testkit.Equal(f.T, "executions of the step before the sleep", before, 1)
		testkit.Equal(f.T, "executions after the sleep", after, 1)
		attempts, err := f.store.Attempts(f.Context(), id)
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "attempts", attempts, 3)
		testkit.Equal(f.T, "attempts[0]: state", attempts[0].State, taskspec.Snoozed)
		testkit.Equal(f.T, "attempts[0]: counted", attempts[0].Counted, false)
	})
}

func TestAttemptMayHaveOtherStepsThanOneBefore(t *testing.T) {
	now := func(name string, sleep bool) func(context.Context) error {
		return func(ctx context.Context) error {
			if sleep {
				return Sleep(ctx, name, 0)
			}
			_, err := Step(ctx, name, func(context.Context) (int, error) { return 1, nil })
			return err
		}
	}
	charge, pause, ship := now("charge", false), now("pause", true), now("ship", false)
	nested := func(ctx context.Context) error {
		_, err := Step(ctx, "outer", func(ctx context.Context) (int, error) { return 1, charge(ctx) })
		return err
	}
	for name, test := range map[string]struct {
		first, then []func(context.Context) error
		want        string // text in the error of the task; empty if the task completes
	}{
		"renamed":        {[]func(context.Context) error{charge, ship}, []func(context.Context) error{charge, now("send", false)}, ""},
		"reordered":      {[]func(context.Context) error{charge, ship}, []func(context.Context) error{ship, charge}, ""},
		"removed":        {[]func(context.Context) error{charge, pause, ship}, []func(context.Context) error{ship}, ""},
		"new in between": {[]func(context.Context) error{charge, ship}, []func(context.Context) error{charge, pause, ship}, ""},
		"another kind": {[]func(context.Context) error{charge}, []func(context.Context) error{now("charge", true)},
			`"charge" is a sleep, and was a step in an earlier attempt`},
		"twice":           {nil, []func(context.Context) error{charge, charge}, `step "charge" comes twice`},
		"nested":          {nil, []func(context.Context) error{nested}, `"charge" began before another step ended`},
		"no name":         {nil, []func(context.Context) error{now("", false)}, `invalid name ""`},
		"no name of text": {nil, []func(context.Context) error{now("a\nb", true)}, `invalid name "a\nb"`},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
				list := test.first
				if calls++; calls > 1 {
					list = test.then
				}
				for _, step := range list {
					if err := step(ctx); err != nil {
						testkit.ErrorIs(f.T, err, jobs.ErrInvalid)
						return "", jobs.Cancel(err)
					}
				}
				if calls == 1 {
					return "", errors.New("again")
				}
				return "", nil
			}, func(f *fakeTimeTest) {
				id := f.enqueue(work.With(""))
				f.work(2 * time.Minute)
				if test.want == "" {
					f.want(id, jobs.Completed, "")
				} else if task := f.want(id, jobs.Cancelled, jobs.ReasonCancelled); !strings.Contains(task.Error, test.want) {
					f.Errorf("%s; want %s", task.Error, test.want)
				}
			})
		})
	}
}

// TestFunctionMayHandleErrorOfStep checks a function that handles the error of
// a step and continues. The next attempt repeats the failed step, but not the
// later steps.
func TestFunctionMayHandleErrorOfStep(t *testing.T) {
	var calls []string
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		step := func(name string, err error) error {
			_, got := Step(ctx, name, func(context.Context) (int, error) { calls = append(calls, name); return 1, err })
			return got
		}
		down := errors.New("the recommendations are down")
		testkit.ErrorIs(f.T, step("recommend", down), down)
		if err := step("send", nil); err != nil {
			return "", err
		}
		return "", Sleep(ctx, "wait for an answer", time.Minute)
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With(""))
		f.work(5 * time.Minute)
		f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "calls", strings.Join(calls, ", "), "recommend, send, recommend")
	})
}

func TestCompletedStepIsKeptWhenItsAttemptIsStopped(t *testing.T) {
	calls := 0
	onFakeTime(t, WorkOptions{Grace: -1}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		calls++
		n, err := Step(ctx, "long", func(ctx context.Context) (int, error) {
			if calls == 1 {
				<-ctx.Done()
			}
			return calls, nil
		})
		testkit.Equal(f.T, "value of the step", n, 1)
		testkit.NoError(f.T, err)
		return "", context.Cause(ctx)
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With(""))
		f.work(10 * time.Second)
		f.want(id, jobs.Pending, jobs.ReasonShutdown)
		f.work(10 * time.Second)
		f.want(id, jobs.Completed, "")
	})
}

func TestManualRetryKeepsStepsOfFailedTask(t *testing.T) {
	done, fail := 0, true
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		if _, err := Step(ctx, "once", func(context.Context) (int, error) { done++; return done, nil }); err != nil {
			return "", err
		}
		if fail {
			return "", errors.New("no")
		}
		return "", nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("", jobs.MaxAttempts(1)))
		again := func() {
			f.work(10 * time.Second)
			moved, err := f.Retry(f.Context(), []int64{id}, RetryOptions{})
			testkit.NoError(f.T, err)
			testkit.Equal(f.T, "the retry is done", moved[0].Done, true)
		}
		again()
		f.work(10 * time.Second)
		f.want(id, jobs.Failed, jobs.ReasonError)
		testkit.Equal(f.T, "executions of the step", done, 1)
		fail = false
		again()
		f.work(10 * time.Second)
		f.want(id, jobs.Completed, "")
		again()
		f.work(10 * time.Second)
		f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "executions of the step after a retry of the completed task", done, 2)
		if _, err := f.Delete(f.Context(), []int64{id}); err != nil {
			f.Error(err)
		}
		steps, err := f.store.Steps(f.Context(), id)
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "steps of the deleted task", steps, 0)
	})
}

func TestStepAndSleepWorkOutsideOfTask(t *testing.T) {
	n, err := Step(t.Context(), "x", func(context.Context) (int, error) { return 7, nil })
	testkit.Equal(t, "value of the step", n, 7)
	testkit.NoError(t, err)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(jobs.ErrCancelled)
	testkit.ErrorIs(t, Sleep(ctx, "x", time.Hour), jobs.ErrCancelled)
}

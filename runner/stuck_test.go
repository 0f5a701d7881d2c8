package runner

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// ignoreContext is a handler that ignores its context. Its input says how long it runs.
func ignoreContext(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
	d, err := time.ParseDuration(in)
	time.Sleep(d)
	return "late", err
}

func TestAHandlerThatIgnoresItsTimeoutIsStuck(t *testing.T) {
	var log bytes.Buffer
	onFakeTime(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, ignoreContext, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("5m", jobs.Timeout(time.Minute), jobs.MaxAttempts(1)))
		f.after(time.Minute+9*time.Second, func() { f.wantWait(id, "running") })
		f.after(time.Minute+11*time.Second, func() { f.wantWait(id, "stuck") })
		f.work(10 * time.Minute)
		f.want(id, jobs.Completed, "") // the handler has kept its slot, so the worker accepts its late result
	})
	var warnings []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "stuck") {
			warnings = append(warnings, line)
		}
	}
	if len(warnings) != 1 {
		t.Fatalf("got %d warnings %q, want one", len(warnings), warnings)
	}
	for _, want := range []string{"level=WARN", "task=1", "job=work", "since=10s", "cause=timeout"} {
		if !strings.Contains(warnings[0], want) {
			t.Errorf("got the warning %q, want one with %q", warnings[0], want)
		}
	}
}

func (f *fakeTimeTest) wantWait(id int64, reason string) {
	task, err := f.Get(f.Context(), id)
	wait, whyErr := f.Why(f.Context(), task)
	if err != nil || whyErr != nil || wait.Reason != reason {
		f.Errorf("after %v task %d: got reason %q (%v, %v), want %q", time.Since(f.began), id, wait.Reason, err, whyErr, reason)
	}
}

func TestReleaseStuckGivesTheSlotToOtherTasks(t *testing.T) {
	for _, test := range []struct {
		name       string
		options    []jobs.Option
		cancelled  bool
		wantState  jobs.State
		wantReason jobs.Reason
	}{
		{"timeout", []jobs.Option{jobs.Timeout(time.Minute), jobs.MaxAttempts(1)}, false, jobs.Failed, jobs.ReasonTimeout},
		{"cancelled", nil, true, jobs.Cancelled, jobs.ReasonCancelled},
	} {
		t.Run(test.name, func(t *testing.T) {
			onFakeTime(t, Options{Concurrency: 1, StuckAfter: time.Second, ReleaseStuck: true}, ignoreContext, func(f *fakeTimeTest) {
				stuck, next := f.enqueue(work.With("1h", test.options...)), f.enqueue(work.With("0s"))
				if test.cancelled {
					f.after(time.Minute, func() {
						if _, err := f.Cancel(f.Context(), []int64{stuck}, CancelOptions{}); err != nil {
							f.Error(err)
						}
					})
				}
				f.after(time.Minute+2*time.Second, func() {
					f.want(stuck, test.wantState, test.wantReason)
					f.want(next, jobs.Completed, "")
					testkit.Equal(f.T, "leaked goroutines", f.leaked.Load(), 1)
				})
				f.after(2*time.Minute, func() {
					workers, err := f.Workers(f.Context())
					if err != nil || len(workers) != 1 || workers[0].Leaked != 1 {
						f.Errorf("got workers %+v (%v), want one with a leaked goroutine", workers, err)
					}
				})
				f.work(2 * time.Hour)
				if got := f.want(stuck, test.wantState, test.wantReason); got.Result != nil {
					f.Errorf("got result %s, want none: the handler returned after its release", got.Result)
				}
				testkit.Equal(f.T, "leaked goroutines after the handler returned", f.leaked.Load(), 0)
			})
		})
	}
}

func TestReleaseStuckRetriesTheTask(t *testing.T) {
	ignoreOnce := func(_ context.Context, f *fakeTimeTest, _ string) (string, error) {
		f.mu.Lock()
		first := len(f.runs) == 1
		f.mu.Unlock()
		if first {
			time.Sleep(time.Hour)
		}
		return "", nil
	}
	onFakeTime(t, Options{StuckAfter: time.Second, ReleaseStuck: true}, ignoreOnce, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.Timeout(time.Minute)))
		f.work(2 * time.Hour)
		testkit.Equal(f.T, "number of runs", len(f.runs), 2)
		f.want(id, jobs.Completed, "")
	})
}

func TestAHandlerThatIgnoresItsContextDelaysWorkByFiveSeconds(t *testing.T) {
	onFakeTime(t, Options{Grace: 10 * time.Second}, ignoreContext, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("1h"))
		f.work(time.Minute)
		testkit.Equal(f.T, "end of Work", time.Since(f.began), time.Minute+15*time.Second)
		f.want(id, jobs.Pending, jobs.ReasonShutdown)
		time.Sleep(time.Hour) // let the function return before the synctest bubble ends
	})
}

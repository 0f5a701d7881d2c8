package runnertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
)

// TestCursorContinuesAfterEachRestart calls ConsumeFinished again and again.
// Each time, ConsumeFinished is stopped while its function handles the second
// task. The test then closes the database and opens it again. The next
// ConsumeFinished must begin with that second task.
func TestCursorContinuesAfterEachRestart(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(outcome.Handler(runOutcome))
		if err := admin.AddCursor(t.Context(), r, "audit"); err != nil {
			t.Fatal(err)
		}
		enqueue := func(how string, options ...jobs.Option) int64 {
			task, err := r.Enqueue(t.Context(), outcome.With(how, options...))
			if err != nil {
				t.Fatal(err)
			}
			return task.ID
		}
		enqueue("lost")
		runnertest.CrashAfterClaim(t, r, 1)
		enqueue("ok", jobs.DependsOn(enqueue("fail")))
		cancelled := enqueue("ok", jobs.In(time.Hour))
		enqueue("ok", jobs.DependsOn(cancelled))
		if _, err := r.Cancel(t.Context(), []int64{cancelled}, runner.CancelOptions{}); err != nil {
			t.Fatal(err)
		}
		enqueue("ok", jobs.ExpiresIn(time.Minute))
		runnertest.Advance(t, 2*time.Minute)
		runnertest.RunDue(t, r)
		want := []string{"4 cancelled cancelled", "5 cancelled dependency", "1 failed lost", "6 cancelled expired", "2 failed error",
			"3 cancelled dependency"}

		var got []string // finished tasks that the function has handled without an error
		for range want {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r = runnertest.Reopen(t, r)
			calls := 0
			stopped := errors.New("stopped")
			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx, stop := context.WithCancelCause(limited)
			err := r.ConsumeFinished(ctx, "audit", func(ctx context.Context, task jobs.Task) error {
				if calls++; calls == 2 {
					stop(stopped)
					return context.Cause(ctx)
				}
				got = append(got, fmt.Sprintf("%d %s %s", task.ID, task.State, task.Reason))
				if len(got) == len(want) {
					stop(stopped)
				}
				return nil
			})
			if !errors.Is(err, stopped) {
				t.Errorf("ConsumeFinished: got %v, want %v", err, stopped)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got ends %q, want %q", got, want)
		}
		defer r.Close()
		var c collector
		consume(t, r, "audit", c.handle)()
		if got := c.take(); len(got) > 0 {
			t.Errorf("got ends %q after the last one was handled, want none", got)
		}
	})
}

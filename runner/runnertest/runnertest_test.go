package runnertest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

type email struct{ To string }

var (
	sendEmail = jobs.Define[email]("email.send", jobs.MaxAttempts(3), jobs.Retry(jobs.Backoff{Strategy: jobs.Fixed, Delay: time.Minute}))
	count     = jobs.DefineResult[string, int]("count")
)

func TestTimePassesWhenTheTestSaysSo(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var sent []string
		r.Register(sendEmail.Handler(func(_ context.Context, e email) error { sent = append(sent, e.To); return nil }))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"later"}, jobs.In(10*time.Minute)))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"low"}))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"high"}, jobs.Priority(9)))
		if got := runnertest.Enqueued(t, r, sendEmail); !slices.Equal(got, []email{{"later"}, {"low"}, {"high"}}) {
			t.Errorf("enqueued %v", got)
		}
		if ran := runnertest.Drain(t, r); len(ran) != 2 || ran[0].State != jobs.Completed {
			t.Errorf("ran %v", ran)
		}
		runnertest.Advance(t, 10*time.Minute-time.Second)
		if ran := runnertest.Drain(t, r); len(ran) != 0 {
			t.Errorf("too early: %v", ran)
		}
		runnertest.Advance(t, time.Second)
		runnertest.Drain(t, r)
		if want := []string{"high", "low", "later"}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		if got := runnertest.Enqueued(t, r, sendEmail); len(got) != 0 {
			t.Errorf("still there: %v", got)
		}
	})
}

func TestAWorkBesideTheTestRunsWhatBecomesDue(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		attempts := 0
		r.Register(sendEmail.Handler(func(context.Context, email) error {
			if attempts++; attempts < 3 {
				return errors.New("no route")
			}
			return nil
		}))
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- r.Work(ctx) }()
		task := runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		runnertest.Advance(t, time.Second)
		if attempts != 1 {
			t.Errorf("%d attempts at once", attempts)
		}
		runnertest.Advance(t, 5*time.Minute)
		stop()
		if err := <-worked; err != nil {
			t.Error(err)
		}
		if got, err := r.Get(t.Context(), task.ID); err != nil || got.State != jobs.Completed || attempts != 3 {
			t.Errorf("%s after %d attempts, %v", got.State, attempts, err)
		}
	})
}

func TestInlineRunsBeforeEnqueueReturns(t *testing.T) {
	r := runnertest.New(t, runner.Options{Inline: true}) // without a bubble, because nothing waits for a time
	var order []string
	r.Register(
		count.Handler(func(_ context.Context, in string) (int, error) { order = append(order, "count"); return len(in), nil }),
		sendEmail.Handler(func(ctx context.Context, e email) error {
			order = append(order, "send")
			_, err := r.Enqueue(ctx, count.With(e.To)) // a task that enqueues another
			return err
		}),
	)
	if n, err := count.Result(runnerkit.Enqueue(t, r, count.With("four")), nil); n != 4 || err != nil {
		t.Errorf("got %v, %v; want n = 4, no error", n, err)
	}
	order = append(order, "then")
	runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
	if want := []string{"count", "then", "send", "count"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	ids, err := r.Add(t.Context(), count.With("a"), count.With("bb"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := count.Result(r.Get(t.Context(), ids[1].ID)); n != 2 || err != nil {
		t.Errorf("got %v, %v; want n = 2, no error", n, err)
	}
}

// recorder records the failure of a test without failing the current one.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func TestAPanicFailsTheTest(t *testing.T) {
	fails := &recorder{TB: t}
	r := runnertest.New(fails)
	r.Register(count.Handler(func(context.Context, string) (int, error) { panic("kaput") }))
	runnerkit.Enqueue(t, r, count.With("x", jobs.MaxAttempts(1)))
	ran := runnertest.Drain(fails, r)
	if len(ran) != 1 || ran[0].Reason != jobs.ReasonPanic {
		t.Errorf("ran %+v", ran)
	}
	if len(fails.said) != 1 || !strings.Contains(fails.said[0], "task 1 (count) panics: kaput") {
		t.Errorf("said %q", fails.said)
	}
}

func TestACrashAfterTheClaimLosesTheAttemptAndNotTheTask(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		calls := 0
		r.Register(sendEmail.Handler(func(context.Context, email) error { calls++; return nil }))
		task := runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		once := runnerkit.Enqueue(t, r, sendEmail.With(email{"bob"}, jobs.AtMostOnce()))
		if claimed := runnertest.CrashAfterClaim(t, r, 10); len(claimed) != 2 || calls != 0 {
			t.Fatalf("claimed %v, %d calls", claimed, calls)
		}
		if got, err := r.Get(t.Context(), task.ID); err != nil || got.State != jobs.Running {
			t.Errorf("got %s, %v; want no error, got.State = Running", got.State, err)
		}
		ran := runnertest.Drain(t, r)
		if len(ran) != 1 || ran[0].ID != task.ID || ran[0].State != jobs.Completed || ran[0].Losses != 1 || ran[0].Attempt != 1 ||
			calls != 1 {
			t.Errorf("%d calls, ran %+v", calls, ran)
		}
		if got, err := r.Get(t.Context(), once.ID); err != nil || got.State != jobs.Failed || got.Reason != jobs.ReasonLost {
			t.Errorf("got %s (%s), %v; want no error, got.State = Failed, got.Reason = ReasonLost", got.State, got.Reason, err)
		}
	})
}

func TestAFunctionThatHasLostItsTaskRunsAgain(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		app, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: r.Path(), RawQuery: "_txlock=immediate"}).String())
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		if _, err := app.ExecContext(t.Context(), `CREATE TABLE sent (addr TEXT) STRICT`); err != nil {
			t.Fatal(err)
		}
		var calls int
		var refused error
		r.Register(sendEmail.Handler(func(ctx context.Context, e email) error {
			calls++
			if calls == 1 {
				if err := runnertest.Lose(ctx, r); err != nil {
					t.Error(err)
				}
				if err := runnertest.Lose(ctx, r); !errors.Is(err, jobs.ErrLost) {
					t.Errorf("lost twice: %v", err)
				}
			}
			tx, err := app.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(ctx, `INSERT INTO sent VALUES (?)`, e.To); err != nil {
				return err
			}
			if err := runner.FinishTx(ctx, tx, nil); err != nil {
				refused = err
				return err
			}
			return tx.Commit()
		}))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		ran := runnertest.Drain(t, r)
		if calls != 2 || !errors.Is(refused, jobs.ErrLost) || len(ran) != 2 || ran[1].State != jobs.Completed || ran[1].Losses != 1 {
			t.Errorf("%d calls, refused %v, ran %+v", calls, refused, ran)
		}
		var n int
		if err := app.QueryRowContext(t.Context(), `SELECT count(*) FROM sent`).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d effects, %v", n, err)
		}
		if err := runnertest.Lose(t.Context(), r); err == nil {
			t.Error("a test has no task to lose")
		}
	})
}

func TestAnErrorAfterTheCommitLeavesATask(t *testing.T) {
	r := runnertest.New(t)
	spec := sendEmail.With(email{"ann"}, jobs.Unique("welcome:ann"))
	runnertest.FailBeforeCommit(t, r)
	if _, err := r.Enqueue(t.Context(), spec); !errors.Is(err, runnertest.ErrInjected) {
		t.Errorf("before the commit: %v", err)
	}
	if got := runnertest.Enqueued(t, r, sendEmail); len(got) != 0 {
		t.Errorf("before the commit: %v", got)
	}
	runnertest.FailAfterCommit(t, r)
	if _, err := r.Enqueue(t.Context(), spec); !errors.Is(err, runnertest.ErrInjected) {
		t.Errorf("after the commit: %v", err)
	}
	if task := runnerkit.Enqueue(t, r, spec); task.ID != 1 { // the same task, because the unique key makes it safe to try again
		t.Errorf("task %d", task.ID)
	}
	if got := runnertest.Enqueued(t, r, sendEmail); len(got) != 1 {
		t.Errorf("after the commit: %v", got)
	}
}

func TestWorkSurvivesCommitsThatFail(t *testing.T) {
	for name, fail := range map[string]func(testing.TB, *runner.Runner){"before": runnertest.FailBeforeCommit,
		"after": runnertest.FailAfterCommit} {
		t.Run(name, func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
				calls := 0
				r.Register(count.Handler(func(context.Context, string) (int, error) {
					calls++
					fail(t, r) // the write that ends this attempt, or a heartbeat
					return calls, nil
				}))
				task := runnerkit.Enqueue(t, r, count.With("x"))
				runnertest.Drain(t, r)
				if n, err := count.Result(r.Get(t.Context(), task.ID)); n != 1 || err != nil || calls != 1 {
					t.Errorf("%d calls, result %d, %v", calls, n, err)
				}
			})
		})
	}
}

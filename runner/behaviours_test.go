package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// These tests show behaviours that people know from River, asynq, backlite or
// goqite, and that no other test shows. docs/behaviours.md lists all of them.

func TestEnqueueOfNothingAddsNothing(t *testing.T) {
	r := runnertest.New(t)
	handle := runnertest.OpenDB(t, r)
	ctx := t.Context()
	for name, call := range map[string]func() ([]jobs.Enqueued, error){
		"EnqueueMany": func() ([]jobs.Enqueued, error) { return r.EnqueueMany(ctx) },
		"EnqueueSeq":  func() ([]jobs.Enqueued, error) { return r.EnqueueSeq(ctx, slices.Values([]jobs.Spec(nil))) },
		"EnqueueManyTx": func() ([]jobs.Enqueued, error) {
			tx := begin(t, handle)
			defer tx.Rollback()
			return r.EnqueueManyTx(ctx, tx)
		},
	} {
		if added, err := call(); len(added) != 0 || err != nil {
			t.Errorf("%s: got %v and error %v, want nothing and no error", name, added, err)
		}
	}
	n, _, err := r.Count(ctx, jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", n, 0)
}

func TestInputsAndResultsKeepTheirValues(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		keepsValue(t, r, "integer", int64(1<<53+1)) // a float64 has no room for it
		keepsValue(t, r, "bytes", []byte("\x00\xff\n{\"a\""))
		keepsValue(t, r, "text", "<b>&amp; é\u2028\x00")
		keepsValue(t, r, "nil map", map[string]int(nil))
		keepsValue(t, r, "time", time.Date(2026, 11, 28, 1, 2, 3, 456789, time.UTC))
	})
}

func keepsValue[V any](t *testing.T, r *runner.Runner, name string, want V) {
	t.Helper()
	echo := jobs.DefineResult[V, V](strings.ReplaceAll(name, " ", "_"))
	var in V
	r.Register(echo.Handler(func(_ context.Context, v V) (V, error) { in = v; return v, nil }))
	task := runnerkit.Enqueue(t, r, echo.With(want))
	runnertest.RunDue(t, r)
	out, err := echo.Result(r.Get(t.Context(), task.ID))
	testkit.NoError(t, err)
	testkit.Equal(t, name+" as input", in, want)
	testkit.Equal(t, name+" as result", out, want)
}

func TestMetadataReachHandler(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var got []string
		r.Register(quick.Handler(func(ctx context.Context, _ any) error {
			task, _ := runner.TaskFromContext(ctx)
			got = append(got, task.Metadata["trace"])
			return nil
		}))
		trace := func(text string) jobs.Option { return jobs.Metadata(map[string]string{"trace": text}) }
		_, err := r.EnqueueMany(t.Context(), quick.With(nil, trace("later"), jobs.In(time.Hour)), quick.With(nil, trace("now")))
		testkit.NoError(t, err)
		runnertest.RunDue(t, r)
		runnertest.Advance(t, time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "metadata", got, []string{"now", "later"})
	})
}

// TestKeyWithHourAddsOneTaskEachHour uses the hour of the clock as a part of
// the key. The key is held for longer than the task takes.
func TestKeyWithHourAddsOneTaskEachHour(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(quick.Handler(func(context.Context, any) error { return nil }))
		var kept []bool
		for range 5 { // at 00:00, 00:25, 00:50, 01:15 and 01:40
			key := time.Now().UTC().Format("2006-01-02T15")
			kept = append(kept, runnerkit.Enqueue(t, r, quick.With(nil, jobs.UniqueWith(key, jobs.UniqueOptions{For: time.Hour}))).Kept)
			runnertest.RunDue(t, r)
			runnertest.Advance(t, 25*time.Minute)
		}
		testkit.Equal(t, "kept", kept, []bool{false, true, true, false, true})
	})
}

func TestMiddlewareDecidesWhetherAndWhenTasksAreRetried(t *testing.T) {
	busy, gone, unwanted := errors.New("busy"), errors.New("gone"), errors.New("unwanted")
	policy := func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (json.RawMessage,
		error) {
		result, err := next(ctx, task)
		switch {
		case errors.Is(err, busy):
			return result, jobs.RetryIn(time.Duration(task.Attempt)*time.Hour, err)
		case errors.Is(err, gone):
			return result, jobs.Fail(err)
		case errors.Is(err, unwanted):
			return result, jobs.Cancel(err)
		}
		return result, err
	}
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Use(policy)
		causes := map[int]error{1: busy, 2: gone, 3: unwanted, 4: nil}
		r.Register(bulk.Handler(func(_ context.Context, n int) error { return causes[n] }))
		ids := enqueueNumbers(t, r, 4)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "states", states(t, r, ids), []string{"retrying busy", "failed gone", "cancelled unwanted", "completed"})
		testkit.Equal(t, "first pause", time.Until(runnerkit.Get(t, r, ids[0]).RunAt).Round(time.Minute), time.Hour)
		runnertest.Advance(t, time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "second pause", time.Until(runnerkit.Get(t, r, ids[0]).RunAt).Round(time.Minute), 2*time.Hour)
	})
}

func TestTasksOfFilterAreCancelledAndDeleted(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		enqueueNumbers(t, r, 3, jobs.Queue("old"))
		enqueueNumbers(t, r, 2, jobs.Queue("new"))
		var ids []int64
		for task, err := range r.All(t.Context(), jobs.Filter{Queues: []string{"old"}}) {
			testkit.NoError(t, err)
			ids = append(ids, task.ID)
		}
		_, err := r.Cancel(t.Context(), ids, runner.CancelOptions{Reason: "cleared"})
		testkit.NoError(t, err)
		deleted, err := r.Delete(t.Context(), ids)
		testkit.NoError(t, err)
		for _, one := range deleted {
			testkit.Equal(t, fmt.Sprint("deleted task ", one.ID), one.Done, true)
		}
		testkit.Equal(t, "inputs that are left", runnertest.Enqueued(t, r, bulk), []int{1, 2})
	})
}

func TestWorkerRunsAtMostConcurrencyTasks(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var mu sync.Mutex
		running, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		r.Register(bulk.Handler(func(context.Context, int) error {
			count(1)
			defer count(-1)
			time.Sleep(time.Minute)
			return nil
		}))
		ids := enqueueNumbers(t, r, 10)
		began := time.Now()
		runnertest.RunDue(t, r, runner.WorkOptions{Concurrency: 3})
		testkit.Equal(t, "most at the same time", most, 3)
		testkit.Equal(t, "minutes for ten tasks", int(time.Since(began).Minutes()), 4)
		testkit.Equal(t, "states", slices.Compact(states(t, r, ids)), []string{"completed"})
	})
}

func TestWorkCanBeginAgainAfterItHasEnded(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(bulk.Handler(func(ctx context.Context, n int) error {
			if n == 2 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}))
		stays := enqueueNumbers(t, r, 1)[0]
		var ids []int64
		for range 20 {
			ids = append(ids, runnerkit.Enqueue(t, r, bulk.With(2)).ID)
			stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 2, Grace: -1})
			runnertest.Advance(t, time.Second)
			testkit.ErrorIs(t, r.Work(t.Context(), runner.WorkOptions{Concurrency: 2, Grace: -1}), jobs.ErrConflict)
			stop()
			stop() // no effect
		}
		testkit.Equal(t, "states", slices.Compact(states(t, r, ids)), []string{"completed"})
		task := runnerkit.Get(t, r, stays)
		testkit.Equal(t, "state of the task that was stopped", task.State, jobs.Pending)
		testkit.Equal(t, "attempts that count", task.Attempt, 0)
	})
}

// TestTaskContinuesAtItsCursor stores the progress of a long task in a step for
// each page.
func TestTaskContinuesAtItsCursor(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var pages []int
		r.Register(bulk.Handler(func(ctx context.Context, last int) error {
			for page := 0; page < last; {
				next, err := runner.Step(ctx, fmt.Sprint("page ", page), func(context.Context) (int, error) {
					pages = append(pages, page)
					if len(pages) == 3 {
						return 0, errors.New("the server hangs up")
					}
					return page + 10, nil
				})
				if err != nil {
					return err
				}
				page = next
			}
			return nil
		}))
		task := runnerkit.Enqueue(t, r, bulk.With(40, jobs.WithBackoff(jobs.Backoff{})))
		runnertest.RunDue(t, r)
		testkit.Equal(t, "pages", pages, []int{0, 10, 20, 20, 30})
		testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
	})
}

func TestScheduleRunsAtStartOfProgram(t *testing.T) {
	tickTest(t, hourly(), hourOf, func(t *testing.T, r *runner.Runner, ran *[]string) {
		runnertest.Advance(t, 90*time.Minute)
		_, err := admin.RunSchedule(t.Context(), r, "report")
		testkit.NoError(t, err)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "runs at the start", *ran, []string{"01:30"})
		runnertest.Advance(t, 30*time.Minute)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "runs after the next tick", *ran, []string{"01:30", "02:00"})
	})
}

// TestBulkFunctionAggregatesByGroup shows one call for tasks of several groups:
// the function makes one effect of each group, and a group that fails is tried
// again alone.
func TestBulkFunctionAggregatesByGroup(t *testing.T) {
	type event struct{ Account, Text string }
	events := jobs.Define[event]("event", jobs.WithBackoff(jobs.Backoff{Delay: time.Minute}))
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var sent []string
		h := events.BulkHandler(100, func(_ context.Context, tasks []jobs.BulkTask[event]) error {
			groups := map[string][]jobs.BulkTask[event]{}
			for _, task := range tasks {
				groups[task.Input.Account] = append(groups[task.Input.Account], task)
			}
			for _, account := range []string{"ann", "bob"} {
				var err error
				if account == "bob" && len(sent) < 2 {
					err = errors.New("no mailbox")
				}
				text := account
				for _, task := range groups[account] {
					text += " " + task.Input.Text
					task.End(err)
				}
				if len(groups[account]) > 0 {
					sent = append(sent, text)
				}
			}
			return nil
		})
		h.BulkWait = time.Minute
		r.Register(h)
		for _, e := range []event{{"ann", "a"}, {"bob", "b"}, {"ann", "c"}, {"bob", "d"}} {
			runnerkit.Enqueue(t, r, events.With(e))
		}
		runnertest.RunDue(t, r)
		testkit.Equal(t, "mails", sent, []string{"ann a c", "bob b d"})
		runnertest.Advance(t, time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "mails after the retry", sent, []string{"ann a c", "bob b d", "bob b d"})
		testkit.Len(t, "tasks that are left", runnertest.Enqueued(t, r, events), 0)
	})
}

func TestTaskOfOpenTransactionIsVisibleInsideOnly(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		tx := begin(t, runnertest.OpenDB(t, r))
		task, err := r.EnqueueTx(t.Context(), tx, quick.With(nil))
		testkit.NoError(t, err)
		inside, err := r.GetTx(t.Context(), tx, task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state inside", inside.State, jobs.Pending)
		_, err = r.Get(t.Context(), task.ID)
		testkit.ErrorIs(t, err, jobs.ErrNotFound)
		testkit.NoError(t, tx.Commit())
		testkit.Equal(t, "state after the commit", runnerkit.Get(t, r, task.ID).State, jobs.Pending)
	})
}

func TestTaskThatWaitsForItsNextAttemptHoldsItsKey(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(quick.Handler(func(ctx context.Context, _ any) error {
			if task, _ := runner.TaskFromContext(ctx); task.Attempt == 1 {
				return errors.New("busy")
			}
			return nil
		}))
		spec := quick.With(nil, jobs.Unique("k"))
		first := runnerkit.Enqueue(t, r, spec)
		runnertest.RunDue(t, r)
		kept := runnerkit.Enqueue(t, r, spec)
		testkit.Equal(t, "task that holds the key", kept.ID, first.ID)
		testkit.Equal(t, "its state", kept.State, jobs.Retrying)
		runnertest.Advance(t, time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "kept after the end", runnerkit.Enqueue(t, r, spec).Kept, false)
	})
}

func TestScheduleIsRemovedWhileWorkerRuns(t *testing.T) {
	tickTest(t, hourly(), hourOf, func(t *testing.T, r *runner.Runner, ran *[]string) {
		stop := runnerkit.Work(t, r)
		runnertest.Advance(t, 150*time.Minute)
		testkit.NoError(t, r.RemoveSchedule(t.Context(), "report"))
		runnertest.Advance(t, 3*time.Hour)
		stop()
		testkit.Equal(t, "runs", *ran, []string{"01:00", "02:00"})
	})
}

func TestSlowConsumerLosesNothingAndDelaysNoTask(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(bulk.Handler(func(context.Context, int) error { return nil }))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		var consumed []int64
		go func() {
			done <- r.ConsumeFinished(ctx, "slow", func(_ context.Context, task jobs.Task) error {
				time.Sleep(time.Hour)
				consumed = append(consumed, task.ID)
				return nil
			})
		}()
		runnertest.Advance(t, time.Second)
		began := time.Now()
		ids := enqueueNumbers(t, r, 3)
		runnertest.RunDue(t, r)
		testkit.Between(t, "time that the tasks took", time.Since(began), 0, time.Minute)
		runnertest.Advance(t, 4*time.Hour)
		stop()
		testkit.ErrorIs(t, <-done, context.Canceled)
		testkit.Equal(t, "consumed tasks", consumed, ids)
	})
}

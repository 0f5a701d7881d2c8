package runner

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// prefetchTest is a test of a worker that claims more tasks than it has free
// slots. The input of a task says how long its function runs.
type prefetchTest struct {
	running, most atomic.Int64 // number of functions that run now, and the greatest number so far
	claimed       atomic.Int64 // greatest number of running tasks that a function saw in the database
	ended         atomic.Int64
	each          func(f *fakeTimeTest, task jobs.Task) // called at the start of each function; may be nil
}

func (a *prefetchTest) do(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
	a.most.Store(max(a.most.Load(), a.running.Add(1)))
	defer a.running.Add(-1)
	n, _, err := f.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Running}})
	if err != nil {
		return "", err
	}
	a.claimed.Store(max(a.claimed.Load(), int64(n)))
	if task, _ := TaskFromContext(ctx); a.each != nil {
		a.each(f, task)
	}
	d, err := time.ParseDuration(in)
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(d):
		a.ended.Add(1)
		return "", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// short adds n tasks that run for a millisecond each.
func short(f *fakeTimeTest, n int, options ...jobs.Option) {
	f.Helper()
	for range n {
		f.enqueue(work.With("1ms", options...))
	}
}

// wantPrefetch checks whether the worker claimed more tasks than it has slots.
// want says whether it should have. wantPrefetch also checks that the worker
// used all slots, and never ran more tasks at once than it has slots.
func (a *prefetchTest) wantPrefetch(t *testing.T, slots int64, want bool) {
	t.Helper()
	testkit.Equal(t, "functions at once", a.most.Load(), slots)
	if got := a.claimed.Load(); got > slots != want {
		t.Errorf("got %d claimed tasks at once with %d slots, want more than slots: %v", got, slots, want)
	}
}

func (f *fakeTimeTest) wantCount(want int, what string, filter jobs.Filter) {
	f.Helper()
	n, _, err := f.Count(f.Context(), filter)
	testkit.NoError(f.T, err)
	testkit.Equal(f.T, what, n, want)
}

func TestWorkerPrefetchesShortTasks(t *testing.T) {
	for _, slots := range []int{1, 3} {
		var a prefetchTest
		onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
			short(f, 500)
			testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: slots, UntilEmpty: true}))
			f.wantCount(500, "completed tasks", jobs.Filter{States: []jobs.State{jobs.Completed}})
			if most := 500/slots + 20; time.Since(f.began) > time.Duration(most)*time.Millisecond {
				t.Errorf("got all tasks done after %v, want at most %d ms", time.Since(f.began), most)
			}
		})
		a.wantPrefetch(t, int64(slots), true)
	}
}

func TestTimeThatTaskWaitsForItsSlotIsNoPartOfItsRun(t *testing.T) {
	var a prefetchTest
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		short(f, 50)
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
		for task, err := range f.All(f.Context(), jobs.Filter{}) {
			testkit.NoError(t, err)
			if took := task.FinishedAt.Sub(task.StartedAt); took > 2*time.Millisecond || task.Duration > 2*time.Millisecond {
				t.Errorf("got task %d with %v from start to end and duration %v, want 1 ms", task.ID, took, task.Duration)
			}
		}
	})
	a.wantPrefetch(t, 1, true)
}

func TestLaterTaskOfHigherPriorityOvertakesPrefetchedTasks(t *testing.T) {
	var a prefetchTest
	a.each = func(f *fakeTimeTest, task jobs.Task) {
		if task.ID == 20 {
			f.enqueue(work.With("1ms", jobs.Priority(9)))
		}
	}
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		short(f, 100)
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
		at := slices.IndexFunc(f.runs, func(r run) bool { return r.task.ID == 101 })
		// The places count from 0, so task 20 has place 19. The urgent task
		// starts next, or after one or two other tasks.
		testkit.Between(t, "place of the urgent task", at, 20, 22)
		slices.SortStableFunc(f.runs, func(x, y run) int { return y.task.Priority - x.task.Priority })
		if !slices.IsSortedFunc(f.runs[1:], func(x, y run) int { return int(x.task.ID - y.task.ID) }) {
			t.Errorf("got runs of %v, want the order of the ids", f.runs)
		}
	})
	a.wantPrefetch(t, 1, true)
}

func TestQueuesTakeTurnsAmongPrefetchedTasks(t *testing.T) {
	var a prefetchTest
	a.each = func(f *fakeTimeTest, task jobs.Task) {
		if task.ID == 50 {
			f.enqueue(work.With("1ms", jobs.Queue("other")))
		}
	}
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		short(f, 200)
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
		at := slices.IndexFunc(f.runs, func(r run) bool { return r.task.Queue == "other" })
		testkit.Between(t, "place of the task of the other queue", at, 50, 53)
	})
	a.wantPrefetch(t, 1, true)
}

// TestPrefetchedTasksGoBackToOtherWorkers runs short tasks, a long task, and
// short tasks again. When the long task starts, the worker has already claimed
// some of the tasks after it. The worker must give them back, so that another
// worker can run them.
func TestPrefetchedTasksGoBackToOtherWorkers(t *testing.T) {
	var a prefetchTest
	onFakeTime(t, WorkOptions{Concurrency: 1}, a.do, func(f *fakeTimeTest) {
		short(f, 20)
		long := f.enqueue(work.With("1h"))
		short(f, 20)
		f.after(time.Second, func() {
			f.want(long, jobs.Running, "")
			f.wantCount(1, "running tasks", jobs.Filter{States: []jobs.State{jobs.Running}})
			f.wantCount(20, "pending tasks", jobs.Filter{States: []jobs.State{jobs.Pending}})
			other, err := Open(db.Alone(f.Context()), f.store.Path(), Options{})
			testkit.NoError(f.T, err)
			defer other.Close()
			other.Register(work.Handler(func(ctx context.Context, in string) (string, error) { return a.do(ctx, f, in) }))
			testkit.NoError(f.T, other.Work(f.Context(), WorkOptions{UntilEmpty: true}))
			f.wantCount(0, "pending tasks", jobs.Filter{States: []jobs.State{jobs.Pending}})
		})
		f.work(2 * time.Hour)
		testkit.Equal(t, "runs", a.ended.Load(), 41)
		for task, err := range f.All(f.Context(), jobs.Filter{}) {
			testkit.NoError(t, err)
			if task.State != jobs.Completed || task.Attempt != 1 || task.Losses != 0 {
				t.Errorf("got task %d %s after %d attempts and %d losses, want completed after 1 and 0", task.ID, task.State, task.Attempt,
					task.Losses)
			}
		}
	})
	testkit.Between(t, "claimed tasks at once", a.claimed.Load(), 2, 200)
}

func TestWorkerThatDrainsGivesTasksBackThatItHasPrefetched(t *testing.T) {
	var a prefetchTest
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		ctx, stop := context.WithCancel(f.Context())
		a.each = func(_ *fakeTimeTest, task jobs.Task) {
			if task.ID == 100 {
				stop()
			}
		}
		short(f, 300)
		testkit.NoError(t, f.Work(ctx, WorkOptions{Concurrency: 1}))
		f.wantCount(int(a.ended.Load()), "completed tasks", jobs.Filter{States: []jobs.State{jobs.Completed}})
		f.wantCount(300-int(a.ended.Load()), "pending tasks", jobs.Filter{States: []jobs.State{jobs.Pending}})
		testkit.Between(t, "runs", len(f.runs), 100, 102)
		for task, err := range f.All(f.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}}) {
			testkit.NoError(t, err)
			testkit.Equal(t, "attempt of a task that has not started", task.Attempt, 0)
		}
	})
	a.wantPrefetch(t, 1, true)
}

func TestCancelledTaskThatWasPrefetchedNeverStarts(t *testing.T) {
	var a prefetchTest
	var cancelled int64
	a.each = func(f *fakeTimeTest, task jobs.Task) {
		if n, _, _ := f.Count(f.Context(), jobs.Filter{States: []jobs.State{jobs.Running}}); n < 2 || cancelled != 0 {
			return
		}
		last := int64(0)
		for task, err := range f.All(f.Context(), jobs.Filter{States: []jobs.State{jobs.Running}}) {
			testkit.NoError(f.T, err)
			last = max(last, task.ID)
		}
		cancelled = last
		_, err := f.Cancel(f.Context(), []int64{last}, CancelOptions{})
		testkit.NoError(f.T, err)
		time.Sleep(50 * time.Millisecond) // the worker reads cancel requests within 20 ms
	}
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		short(f, 300)
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
		got := f.want(cancelled, jobs.Cancelled, jobs.ReasonCancelled)
		testkit.Equal(t, "attempt", got.Attempt, 0)
		testkit.Equal(t, "runs", len(f.runs), 299)
	})
}

func TestSomeWorkersPrefetchNothing(t *testing.T) {
	for _, test := range []struct {
		name    string
		options WorkOptions
		in      string
		prepare func(f *fakeTimeTest)
	}{
		{name: "long tasks", in: "11ms"},
		{name: "a limit in the database", in: "1ms", prepare: func(f *fakeTimeTest) {
			limit := db.Limit{Target: db.Target{Kind: db.QueueTarget, Name: "other"}, Running: 9}
			testkit.NoError(f.T, f.store.SetLimit(f.Context(), limit, now()))
		}},
		{name: "a pause", in: "1ms", prepare: func(f *fakeTimeTest) {
			testkit.NoError(f.T, f.store.Pause(f.Context(), []string{"other"}, db.Pause{At: now()}))
		}},
		{name: "limits of queues", in: "1ms", options: WorkOptions{Queues: []jobs.QueueMax{{Name: "default", Max: 1}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a prefetchTest
			test.options.Concurrency, test.options.UntilEmpty = 1, true
			onFakeTime(t, test.options, a.do, func(f *fakeTimeTest) {
				if test.prepare != nil {
					test.prepare(f)
				}
				for range 10 {
					f.enqueue(work.With(test.in))
				}
				testkit.NoError(t, f.Work(f.Context(), test.options))
				testkit.Equal(t, "runs", len(f.runs), 10)
			})
			a.wantPrefetch(t, 1, false)
		})
	}
}

func TestTasksWithLargeArgumentsAreHardlyPrefetched(t *testing.T) {
	var a prefetchTest
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		return a.do(ctx, f, "1ms")
	}, func(f *fakeTimeTest) {
		for range 10 {
			f.enqueue(work.With(strings.Repeat("x", 700_000)))
		}
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
	})
	testkit.Equal(t, "claimed tasks at once", a.claimed.Load(), 2) // it would be 3 if the arguments were small
}

// TestTaskThatMustNotRunTwiceIsNotPrefetchedForLong checks a task that must not
// run twice. If the worker has claimed such a task and has no free slot for it,
// the worker gives the task back immediately.
func TestTaskThatMustNotRunTwiceIsNotPrefetchedForLong(t *testing.T) {
	var a prefetchTest
	a.each = func(f *fakeTimeTest, task jobs.Task) {
		time.Sleep(time.Millisecond) // during this sleep the worker gives back all tasks that it must not keep
		filter := jobs.Filter{States: []jobs.State{jobs.Running}}
		for other, err := range f.All(f.Context(), filter) {
			if testkit.NoError(f.T, err); other.MaxLosses == 0 && other.ID != task.ID {
				f.Errorf("got task %d claimed while task %d runs, want it pending", other.ID, task.ID)
			}
		}
	}
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		for i := range 60 {
			f.enqueue(work.With("1ms", jobs.MaxLosses(i%3), jobs.Label(strconv.Itoa(i))))
		}
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
		testkit.Equal(t, "runs", len(f.runs), 60)
	})
}

func TestAtMostHundredTasksWait(t *testing.T) {
	var a prefetchTest
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		short(f, 600)
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 60, UntilEmpty: true}))
		testkit.Equal(t, "runs", len(f.runs), 600)
	})
	testkit.Equal(t, "claimed tasks at once", a.claimed.Load(), 160)
}

// TestCommandsAreNotPrefetched registers a function as the handler of commands,
// because a real command does not run on fake time.
func TestCommandsAreNotPrefetched(t *testing.T) {
	var a prefetchTest
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		f.Register(jobs.Handler{Job: command.Job, Run: func(ctx context.Context, _ jobs.Task) (json.RawMessage, error) {
			_, err := a.do(ctx, f, "1ms")
			return nil, err
		}})
		for range 50 {
			f.enqueue(jobs.Command(command.Command{Argv: []string{"true"}}))
		}
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, UntilEmpty: true}))
		testkit.Equal(t, "runs", a.ended.Load(), 50)
	})
	a.wantPrefetch(t, 1, false)
}

// TestTaskThatWaitsBeyondItsLeaseDoesNotStart makes the heartbeats fail while a
// task waits for a slot. When the slot becomes free, the lease of the task has
// expired. Another worker may own the task by then, so this worker must not
// start it.
func TestTaskThatWaitsBeyondItsLeaseDoesNotStart(t *testing.T) {
	var a prefetchTest
	const lease, locked = shortestLease, 2 * time.Second
	var from time.Duration // time at which the heartbeats begin to fail
	a.each = func(f *fakeTimeTest, task jobs.Task) {
		if task.ID == 20 && task.Losses == 0 {
			from = time.Since(f.began)
			f.holdWriteLock(from+time.Millisecond, from+locked) // take the lock between two writes of the worker
			time.Sleep(lease + 50*time.Millisecond)             // this function ignores the end of its context
		}
	}
	onFakeTime(t, WorkOptions{}, a.do, func(f *fakeTimeTest) {
		short(f, 100)
		testkit.NoError(t, f.Work(f.Context(), WorkOptions{Concurrency: 1, Lease: lease, UntilEmpty: true}))
		for _, r := range f.runs {
			if r.at > from && r.at < from+locked {
				t.Errorf("got a start of task %d %v after the last heartbeat, want none before %v", r.task.ID, r.at-from, locked)
			}
		}
		f.wantCount(100, "completed tasks", jobs.Filter{States: []jobs.State{jobs.Completed}})
	})
	a.wantPrefetch(t, 1, true)
}

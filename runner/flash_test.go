package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// TestFlashCollectsWrites checks that a worker with Flash claims at most once
// per WriteEvery, and that it writes the outcomes of attempts in the same
// transaction. The worker of this test has been idle before, so it claims the
// first task at once.
func TestFlashCollectsWrites(t *testing.T) {
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{Concurrency: 10}, nil, func(f *fakeTimeTest) {
		const second = time.Second
		first := f.enqueue(work.With("x"))
		for _, at := range []time.Duration{1, 2, 3, 4, 6, 7, 8, 9} {
			f.after(at*second, func() { f.enqueue(work.With("x")) })
		}
		f.after(4900*time.Millisecond, func() { f.want(first, jobs.Running, "") })
		f.after(5100*time.Millisecond, func() { f.want(first, jobs.Completed, "") })
		f.work(time.Minute)
		f.wantRuns(0, 5*second, 5*second, 5*second, 5*second, 10*second, 10*second, 10*second, 10*second)
	})
}

// TestFlashWritesAtOnceWhenItStops checks that a worker that stops writes the
// outcomes of its attempts at once, without waiting for WriteEvery.
func TestFlashWritesAtOnceWhenItStops(t *testing.T) {
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		f.work(time.Second)
		f.want(id, jobs.Completed, "")
		testkit.Between(f.T, "time", time.Since(f.began), 0, 2*time.Second)
		if err := f.Work(f.Context(), WorkOptions{UntilEmpty: true}); err != nil {
			f.Fatal(err)
		}
		testkit.Between(f.T, "time", time.Since(f.began), 0, 2*time.Second)
	})
}

// TestFlashDoesNotDelayBacklog checks that a worker with Flash writes at once
// while tasks wait for a slot or because of a limit. With tasks of one lane,
// the worker delays only the write that ends the first task. After this write
// the worker knows that tasks wait for the lane, so it writes each further end
// at once.
func TestFlashDoesNotDelayBacklog(t *testing.T) {
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{Concurrency: 2}, nil, func(f *fakeTimeTest) {
		for range 7 {
			f.enqueue(work.With("x"))
		}
		f.work(4 * time.Second)
		f.wantRuns(0, 0, 0, 0, 0, 0, 0)
	})
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{Concurrency: 50,
		Queues: []jobs.QueueMax{{Name: "default", Max: 1}}}, nil, func(f *fakeTimeTest) {
		for range 3 {
			f.enqueue(work.With("x"))
		}
		f.work(4 * time.Second)
		f.wantRuns(0, 0, 0)
	})
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{Concurrency: 50}, nil, func(f *fakeTimeTest) {
		limit := db.Limit{Target: db.Target{Kind: db.JobTarget, Name: work.Job()}, Running: 1}
		testkit.NoError(f.T, f.store.SetLimit(f.Context(), limit, now()))
		for range 3 {
			f.enqueue(work.With("x"))
		}
		f.work(4 * time.Second)
		f.wantRuns(0, 0, 0)
	})
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{Concurrency: 4}, nil, func(f *fakeTimeTest) {
		for range 5 {
			f.enqueue(work.With("x", jobs.Lane("device 1")))
		}
		f.work(7 * time.Second) // no task waits for a slot, so the worker delays the write that ends the first task
		f.wantRuns(0, 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second)
	})
}

// TestFlashWritesEndOfAtMostOnceTaskAtOnce checks a task that must not run
// twice. If its worker died before it wrote the outcome, the task would fail,
// so the worker does not delay this write.
func TestFlashWritesEndOfAtMostOnceTaskAtOnce(t *testing.T) {
	runOnFakeTime(t, nil, Options{Sync: SyncFlash}, WorkOptions{}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.AtMostOnce()))
		f.after(time.Second, func() { f.want(id, jobs.Completed, "") })
		f.work(2 * time.Second)
	})
}

// TestFlashRenewsLeasesOfEndedAttempts checks an attempt that has ended while
// its worker delays the write of the outcome. No worker may treat the task as
// lost during this delay.
func TestFlashRenewsLeasesOfEndedAttempts(t *testing.T) {
	runOnFakeTime(t, nil, Options{Sync: SyncFlash, WriteEvery: 5 * time.Second}, WorkOptions{Lease: 10 * time.Second}, func(
		ctx context.Context, f *fakeTimeTest,
		in string) (string, error) {
		if in == "long" {
			time.Sleep(time.Minute)
		}
		return in, nil
	}, func(f *fakeTimeTest) {
		long := f.enqueue(work.With("long"))
		for i := range 60 {
			f.after(time.Duration(i)*time.Second+time.Millisecond, func() { f.enqueue(work.With("short")) })
		}
		f.work(2 * time.Minute)
		testkit.Equal(f.T, "losses", f.want(long, jobs.Completed, "").Losses, 0)
		tasks, err := f.List(f.Context(), jobs.Filter{})
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "tasks", tasks, 61)
		for _, task := range tasks {
			testkit.Equal(f.T, "runs of a task", task.Attempt+task.Losses, 1)
		}
	})
}

func TestInvalidLevelsOfSyncAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []Options{{Sync: -1}, {Sync: SyncFlash + 1}, {Sync: SyncFlash, WriteEvery: -time.Second}} {
			_, err := Open(t.Context(), t.TempDir()+"/x.db", o)
			testkit.ErrorIs(t, err, jobs.ErrInvalid)
		}
	})
	runOnFakeTime(t, nil, Options{Sync: SyncFlash, WriteEvery: 40 * time.Second}, WorkOptions{}, nil, func(f *fakeTimeTest) {
		testkit.ErrorIs(t, f.Work(t.Context(), WorkOptions{Lease: time.Minute}), jobs.ErrInvalid)
	})
}

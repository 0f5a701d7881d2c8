package runner

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// claimWithOtherWorker registers a second worker in the same file, and claims a
// task for it. The second worker has no process: the test makes all calls for
// it.
func (f *fakeTimeTest) claimWithOtherWorker(lease time.Duration) (*db.Worker, jobs.Task) {
	f.Helper()
	w, err := f.store.Register(f.Context(), db.WorkerInfo{Name: "other", Lease: lease, StartedAt: now()},
		[]db.ClaimJob{{Job: "work", MaxAttempts: 3}})
	if err != nil {
		f.Fatal(err)
	}
	turned, err := w.Cycle(f.Context(), db.Cycle{Now: now(), Look: true, Claim: db.Claim{Free: 1, Lease: lease}})
	testkit.NoError(f.T, err)
	testkit.Len(f.T, "claimed tasks", turned.Claimed, 1)
	return w, turned.Claimed[0]
}

func claimID(t jobs.Task) db.ClaimID { return db.ClaimID{ID: t.ID, GenerationID: t.GenerationID} }

// wantOneRun checks that the function of the job "work" was called once, at the
// time in since or at most two seconds later.
func (f *fakeTimeTest) wantOneRun(since time.Duration) run {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	testkit.Len(f.T, "runs", f.runs, 1)
	testkit.Between(f.T, "start of the first run", f.runs[0].at, since, since+2*time.Second)
	return f.runs[0]
}

func TestTaskOfSilentWorkerIsTakenOverAfterItsLease(t *testing.T) {
	// The task runs again when the lease of the worker that claimed it expires.
	// The lease length of the worker that takes the task over does not matter.
	for _, lease := range []time.Duration{20 * time.Second, 5 * time.Minute} {
		onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
			id := f.enqueue(work.With("x"))
			f.claimWithOtherWorker(lease)
			f.work(time.Hour)
			got := f.want(id, jobs.Completed, "")
			r := f.wantOneRun(lease)
			testkit.Equal(f.T, "losses of the run", r.task.Losses, 1)
			testkit.Equal(f.T, "attempt of the run", r.task.Attempt, 1)
			testkit.Equal(f.T, "attempt", got.Attempt, 1)
		})
	}
}

func TestNewReaperWaitsForWholeLease(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		f.claimWithOtherWorker(time.Minute)
		time.Sleep(24 * time.Hour) // the lease expires in this time, but no reaper runs
		f.work(time.Hour)
		f.wantOneRun(24*time.Hour + time.Minute)
	})
}

func TestWorkerThatSendsHeartbeatsKeepsItsTask(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		w, task := f.claimWithOtherWorker(time.Minute)
		go func() {
			for range 60 { // 60 rounds take half an hour
				time.Sleep(30 * time.Second)
				if owned, err := w.Beat(f.Context(), []db.ClaimID{claimID(task)}, time.Minute, now()); err != nil || len(owned) != 1 {
					f.Errorf("after %v got claims %v (%v), want one", time.Since(f.began), owned, err)
					return
				}
			}
		}()
		f.after(30*time.Minute, func() { f.want(id, jobs.Running, "") })
		f.work(time.Hour)
		f.wantOneRun(31 * time.Minute)
	})
}

func TestHeartbeatsRenewLeasesOfRunningTasks(t *testing.T) {
	onFakeTime(t, WorkOptions{Lease: 12 * time.Second}, func(_ context.Context, f *fakeTimeTest, _ string) (string, error) {
		time.Sleep(10 * time.Minute)
		return "", nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		for at := time.Second; at < 10*time.Minute; at += 7 * time.Second {
			f.after(at, func() {
				task := f.want(id, jobs.Running, "")
				if left := time.Until(task.LeaseExpiresAt); left <= 9*time.Second || left > 12*time.Second {
					f.Errorf("after %v got a lease that lasts for %v, want more than 9s and at most 12s", time.Since(f.began), left)
				}
			})
		}
		f.work(time.Hour)
		testkit.Equal(f.T, "losses", f.want(id, jobs.Completed, "").Losses, 0)
		testkit.Equal(f.T, "rejected results", f.Runner.store.Fenced.Load(), 0)
	})
}

func TestAttemptThatLostItsTaskIsStoppedAndItsResultIsRejected(t *testing.T) {
	onFakeTime(t, WorkOptions{Concurrency: 1}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		if task, _ := TaskFromContext(ctx); task.Losses > 0 {
			return "second", nil
		}
		<-ctx.Done()
		testkit.ErrorIs(f.T, context.Cause(ctx), jobs.ErrLost)
		return "first", nil // this function returns a result although it has lost its task
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		reaper, err := f.store.Register(f.Context(), db.WorkerInfo{Name: "reaper", Lease: time.Minute, StartedAt: now()}, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.after(25*time.Second, func() {
			leases, err := reaper.Leases(f.Context())
			testkit.NoError(f.T, err)
			testkit.Len(f.T, "leases", leases, 1)
			if leases, err = reaper.Revoke(f.Context(), leases); err != nil {
				f.Error(err)
			}
			reaped, err := reaper.Reap(f.Context(), leases, now())
			testkit.NoError(f.T, err)
			testkit.Len(f.T, "reaped", reaped, 1)
		})
		f.work(time.Hour)
		got := f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "result", string(got.Result), `"second"`)
		testkit.Equal(f.T, "losses", got.Losses, 1)
		testkit.Equal(f.T, "attempt", got.Attempt, 1)
		f.wantRuns(0, 30*time.Second) // the first heartbeat after the loss stops the attempt
		testkit.Equal(f.T, "rejected results", f.Runner.store.Fenced.Load(), 1)
	})
}

// holdWriteLock holds the write lock between two times of the test, while Work
// runs. It uses a separate connection.
func (f *fakeTimeTest) holdWriteLock(from, until time.Duration) {
	raw, err := sql.Open("sqlite", "file:"+f.store.Path()+"?_pragma=busy_timeout(0)")
	if err != nil {
		f.Fatal(err)
	}
	f.after(from, func() {
		defer raw.Close()
		conn, err := raw.Conn(f.Context())
		if err != nil {
			f.Error(err)
			return
		}
		defer conn.Close()
		if _, err := conn.ExecContext(f.Context(), "BEGIN IMMEDIATE"); err != nil {
			f.Error(err)
		}
		time.Sleep(until - time.Since(f.began))
		if _, err := conn.ExecContext(f.Context(), "ROLLBACK"); err != nil {
			f.Error(err)
		}
	})
}

func TestAttemptsStopBeforeTheirLeaseEndsWhenHeartbeatsFail(t *testing.T) {
	var log bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	runOnFakeTime(t, nil, o, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		if task, _ := TaskFromContext(ctx); task.Losses > 0 {
			return in, nil
		}
		<-ctx.Done()
		testkit.ErrorIs(f.T, context.Cause(ctx), jobs.ErrLost)
		testkit.Between(f.T, "time of the stop", time.Since(f.began), 0, 70*time.Second)
		return "", ctx.Err()
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.MaxAttempts(1)))
		f.holdWriteLock(15*time.Second, 2*time.Minute)
		f.work(time.Hour)
		got := f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "losses", got.Losses, 1)
		testkit.Equal(f.T, "attempt", got.Attempt, 1)
		f.mu.Lock()
		defer f.mu.Unlock()
		testkit.Len(f.T, "runs", f.runs, 2)
		testkit.Between(f.T, "start of the second run", f.runs[1].at, 2*time.Minute, 2*time.Minute+15*time.Second)
		testkit.Equal(f.T, "errors in the log", strings.Count(log.String(), "level=ERROR"), 1)
		testkit.Contains(f.T, log.String(), `level=ERROR msg="heartbeats fail: stopping all attempts"`)
	})
}

func TestShortWriteLockOnlyDelaysFinish(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		time.Sleep(20 * time.Second)
		return in, nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		f.holdWriteLock(15*time.Second, 40*time.Second)
		f.work(time.Hour)
		got := f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "losses", got.Losses, 0)
		if !got.FinishedAt.Equal(f.began.Add(20 * time.Second)) {
			f.Errorf("got an end at %v, want %v", got.FinishedAt, f.began.Add(20*time.Second))
		}
		f.wantRuns(0)
	})
}

func TestDrainWaitsForGraceThenReleasesTasks(t *testing.T) {
	onFakeTime(t, WorkOptions{Grace: time.Minute, Concurrency: 2}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		d, _ := time.ParseDuration(in)
		select {
		case <-time.After(d):
			return in, nil
		case <-ctx.Done():
			testkit.Equal(f.T, "time of the shutdown", time.Since(f.began), 2*time.Minute)
			testkit.ErrorIs(f.T, context.Cause(ctx), jobs.ErrShutdown)
			return "", ctx.Err()
		}
	}, func(f *fakeTimeTest) {
		short, long := f.enqueue(work.With("90s")), f.enqueue(work.With("1h"))
		f.after(70*time.Second, func() { f.enqueue(work.With("0s")) }) // a worker that drains starts no task
		f.work(time.Minute)
		testkit.Equal(f.T, "end of the drain", time.Since(f.began), 2*time.Minute)
		f.want(short, jobs.Completed, "")
		got := f.want(long, jobs.Pending, jobs.ReasonShutdown)
		testkit.Equal(f.T, "attempt", got.Attempt, 0)
		testkit.Equal(f.T, "losses", got.Losses, 0)
		f.wantRuns(0, 0)
	})
}

func TestFunctionThatIgnoresItsContextIsAbandoned(t *testing.T) {
	late := func(context.Context, *fakeTimeTest, string) (string, error) {
		time.Sleep(time.Hour)
		return "late", nil
	}
	onFakeTime(t, WorkOptions{Grace: -1}, late, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", func(s *jobs.Spec) { s.KillAfter = 0 }))
		f.work(time.Minute)
		if at := time.Since(f.began); at > time.Minute+6*time.Second {
			f.Errorf("got a drain of %v, want at most 66s", at)
		}
		f.want(id, jobs.Pending, jobs.ReasonShutdown)
		time.Sleep(2 * time.Hour) // the function returns after the worker has given up waiting for it
		if got := f.want(id, jobs.Pending, jobs.ReasonShutdown); got.Result != nil {
			f.Errorf("got result %s, want none", got.Result)
		}
	})
}

package runner

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// other registers a second worker in the same file and claims a task with it. The test itself makes all other calls for that worker.
func (b *bubble) other(lease time.Duration) (*db.Worker, jobs.Task) {
	b.Helper()
	w, err := b.store.Register(b.Context(), db.WorkerInfo{Name: "other", Lease: lease, StartedAt: now()},
		[]db.ClaimJob{{Job: "work", MaxAttempts: 3}})
	if err != nil {
		b.Fatal(err)
	}
	turned, err := w.Cycle(b.Context(), db.Cycle{Now: now(), Look: true, Claim: db.Claim{Free: 1, Lease: lease}})
	if err != nil || len(turned.Claimed) != 1 {
		b.Fatalf("got %+v, %v; want no error, len(turned.Claimed) = 1", turned, err)
	}
	return w, turned.Claimed[0]
}

func claimID(t jobs.Task) db.ClaimID { return db.ClaimID{ID: t.ID, GenerationID: t.GenerationID} }

// ranOnce checks that the function was called once, at the given time or at most two seconds later.
func (b *bubble) ranOnce(since time.Duration) run {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.runs) != 1 || b.runs[0].at < since || b.runs[0].at > since+2*time.Second {
		b.Fatalf("ran %+v, want once, after %v", b.runs, since)
	}
	return b.runs[0]
}

func TestTheTaskOfASilentWorkerIsTakenOverAfterItsLease(t *testing.T) {
	// The lease of the other worker counts, not the lease of this one.
	for _, lease := range []time.Duration{20 * time.Second, 5 * time.Minute} {
		fake(t, Options{}, nil, func(b *bubble) {
			id := b.enqueue(work.With("x"))
			b.other(lease)
			b.work(time.Hour)
			got := b.want(id, jobs.Completed, "")
			if r := b.ranOnce(lease); r.task.Losses != 1 || r.task.Attempt != 1 || got.Attempt != 1 {
				b.Errorf("got %+v; want task.Losses = 1, task.Attempt = 1, got.Attempt = 1", r)
			}
		})
	}
}

func TestAReaperThatHasJustStartedWaitsForALeaseOfItsOwn(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		b.enqueue(work.With("x"))
		b.other(time.Minute)
		time.Sleep(24 * time.Hour) // on the wall clock the lease ended long ago
		b.work(time.Hour)
		b.ranOnce(24*time.Hour + time.Minute)
	})
}

func TestAWorkerThatBeatsKeepsItsTask(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		w, task := b.other(time.Minute)
		go func() {
			for range 60 { // for half an hour
				time.Sleep(30 * time.Second)
				if owned, err := w.Beat(b.Context(), []db.ClaimID{claimID(task)}, time.Minute, now()); err != nil || len(owned) != 1 {
					b.Errorf("after %v: %v %v", time.Since(b.began), owned, err)
					return
				}
			}
		}()
		b.within(30*time.Minute, func() { b.want(id, jobs.Running, "") })
		b.work(time.Hour)
		b.ranOnce(31 * time.Minute)
	})
}

func TestHeartbeatsRenewTheLeasesOfWhatRuns(t *testing.T) {
	fake(t, Options{Lease: 12 * time.Second}, func(_ context.Context, b *bubble, _ string) (string, error) {
		time.Sleep(10 * time.Minute)
		return "", nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		for at := time.Second; at < 10*time.Minute; at += 7 * time.Second {
			b.within(at, func() {
				task := b.want(id, jobs.Running, "")
				if left := time.Until(task.LeaseExpiresAt); left <= 9*time.Second || left > 12*time.Second {
					b.Errorf("after %v the lease lasts for %v", time.Since(b.began), left)
				}
			})
		}
		b.work(time.Hour)
		if got := b.want(id, jobs.Completed, ""); got.Losses != 0 || b.Runner.fenced.Load() != 0 {
			b.Errorf("got %+v; want Losses = 0, b.Runner.fenced.Load() = 0", got)
		}
	})
}

func TestAnAttemptWhoseTaskWasTakenAwayIsStoppedAndRefused(t *testing.T) {
	fake(t, Options{Concurrency: 1}, func(ctx context.Context, b *bubble, in string) (string, error) {
		if task, _ := TaskFrom(ctx); task.Losses > 0 {
			return "second", nil
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), jobs.ErrLost) {
			b.Errorf("got %+v; want Is(context.Cause(ctx), ErrLost)", context.Cause(ctx))
		}
		return "first", nil // the function ignores the loss
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		reaper, err := b.store.Register(b.Context(), db.WorkerInfo{Name: "reaper", Lease: time.Minute, StartedAt: now()}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.within(25*time.Second, func() {
			leases, err := reaper.Leases(b.Context())
			if err != nil || len(leases) != 1 {
				b.Errorf("got %+v, %v; want no error, len(leases) = 1", leases, err)
			}
			if leases, err = reaper.Revoke(b.Context(), leases); err != nil {
				b.Error(err)
			}
			if reaped, err := reaper.Reap(b.Context(), leases, now()); err != nil || len(reaped) != 1 {
				b.Errorf("got %+v, %v; want no error, len(reaped) = 1", reaped, err)
			}
		})
		b.work(time.Hour)
		if got := b.want(id, jobs.Completed, ""); string(got.Result) != `"second"` || got.Losses != 1 || got.Attempt != 1 {
			b.Errorf("got %+v; want string(Result) = `\"second\"`, Losses = 1, Attempt = 1", got)
		}
		b.ran(0, 30*time.Second) // the heartbeat after the loss stops the attempt
		if n := b.Runner.fenced.Load(); n != 1 {
			b.Errorf("%d results were refused", n)
		}
	})
}

// hold keeps the write lock for a while, on a connection of its own, while Work runs.
func (b *bubble) hold(from, until time.Duration) {
	raw, err := sql.Open("sqlite", "file:"+b.Path()+"?_pragma=busy_timeout(0)")
	if err != nil {
		b.Fatal(err)
	}
	b.within(from, func() {
		defer raw.Close()
		conn, err := raw.Conn(b.Context())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		if _, err := conn.ExecContext(b.Context(), "BEGIN IMMEDIATE"); err != nil {
			b.Error(err)
		}
		time.Sleep(until - time.Since(b.began))
		if _, err := conn.ExecContext(b.Context(), "ROLLBACK"); err != nil {
			b.Error(err)
		}
	})
}

func TestAttemptsStopWhileTheirLeaseStandsWhenNoBeatComesThrough(t *testing.T) {
	fake(t, Options{}, func(ctx context.Context, b *bubble, in string) (string, error) {
		if task, _ := TaskFrom(ctx); task.Losses > 0 {
			return in, nil
		}
		<-ctx.Done()
		if at := time.Since(b.began); !errors.Is(context.Cause(ctx), jobs.ErrLost) || at > 70*time.Second {
			b.Errorf("after %v: %v", at, context.Cause(ctx))
		}
		return "", ctx.Err()
	}, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.MaxAttempts(1)))
		b.hold(15*time.Second, 2*time.Minute)
		b.work(time.Hour)
		if got := b.want(id, jobs.Completed, ""); got.Losses != 1 || got.Attempt != 1 {
			b.Errorf("got %+v; want Losses = 1, Attempt = 1", got)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.runs) != 2 || b.runs[1].at < 2*time.Minute || b.runs[1].at > 2*time.Minute+15*time.Second {
			b.Errorf("got %+v; want len(b.runs) = 2, b.runs[1].at >= 2*Minute, b.runs[1].at <= 2*Minute+15*Second", b.runs)
		}
	})
}

func TestAShortLockOnlyDelays(t *testing.T) {
	fake(t, Options{}, func(_ context.Context, _ *bubble, in string) (string, error) {
		time.Sleep(20 * time.Second)
		return in, nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		b.hold(15*time.Second, 40*time.Second)
		b.work(time.Hour)
		if got := b.want(id, jobs.Completed, ""); got.Losses != 0 || !got.FinishedAt.Equal(b.began.Add(20*time.Second)) {
			b.Errorf("got %+v; want Losses = 0, FinishedAt.Equal(b.began.Add(20*Second))", got)
		}
		b.ran(0)
	})
}

func TestDrainWaitsForGraceThenGivesBack(t *testing.T) {
	fake(t, Options{Grace: time.Minute, Concurrency: 2}, func(ctx context.Context, b *bubble, in string) (string, error) {
		d, _ := time.ParseDuration(in)
		select {
		case <-time.After(d):
			return in, nil
		case <-ctx.Done():
			if at := time.Since(b.began); at != 2*time.Minute || !errors.Is(context.Cause(ctx), jobs.ErrShutdown) {
				b.Errorf("after %v: %v", at, context.Cause(ctx))
			}
			return "", ctx.Err()
		}
	}, func(b *bubble) {
		short, long := b.enqueue(work.With("90s")), b.enqueue(work.With("1h"))
		b.within(70*time.Second, func() { b.enqueue(work.With("0s")) }) // nothing starts during the drain
		b.work(time.Minute)
		if at := time.Since(b.began); at != 2*time.Minute {
			b.Errorf("drained after %v", at)
		}
		b.want(short, jobs.Completed, "")
		if got := b.want(long, jobs.Pending, jobs.ReasonShutdown); got.Attempt != 0 || got.Losses != 0 {
			b.Errorf("got %+v; want Attempt = 0, Losses = 0", got)
		}
		b.ran(0, 0)
	})
}

func TestAFunctionThatIgnoresItsContextIsGivenUp(t *testing.T) {
	late := func(context.Context, *bubble, string) (string, error) {
		time.Sleep(time.Hour)
		return "late", nil
	}
	fake(t, Options{Grace: -1}, late, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.KillAfter(0)))
		b.work(time.Minute)
		if at := time.Since(b.began); at > time.Minute+6*time.Second {
			b.Errorf("drained after %v", at)
		}
		b.want(id, jobs.Pending, jobs.ReasonShutdown)
		time.Sleep(2 * time.Hour) // the function returns after it was abandoned
		if got := b.want(id, jobs.Pending, jobs.ReasonShutdown); got.Result != nil {
			b.Errorf("got %+v, want Result = nil", got)
		}
	})
}

package dbtest

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func (s *store) beat(w *db.Worker, claims ...db.ClaimID) []db.ClaimID {
	s.Helper()
	owned := must(w.Beat(s.Context(), claims, lease, s.now))(s)
	slices.SortFunc(owned, func(a, b db.ClaimID) int { return int(a.ID - b.ID) })
	return owned
}

func (s *store) reap(w *db.Worker, leases ...db.Lease) int {
	s.Helper()
	return len(must(revokeAndReap(s.Context(), w, leases, s.now))(s))
}

// revokeAndReap revokes claims and records their loss, as a worker does after
// it has killed the processes of a dead worker.
func revokeAndReap(ctx context.Context, w *db.Worker, leases []db.Lease, now time.Time) ([]db.Reaped, error) {
	revoked, err := w.Revoke(ctx, leases)
	if err != nil {
		return nil, err
	}
	return w.Reap(ctx, revoked, now)
}

func (s *store) leases(w *db.Worker) []db.Lease {
	s.Helper()
	return must(w.Leases(s.Context()))(s)
}

var leases = group{
	"running tasks that should have stopped are stuck": func(s *store) {
		limited := commandSpec()
		limited.Timeout, limited.KillAfter = time.Minute, time.Second
		s.insert(limited, commandSpec(), commandSpec())
		w := s.worker()
		claimed := s.claim(w, 3)
		s.apply(db.Cancel("", false, s.now), claimed[1].ID)
		stuck := func(want ...int64) {
			s.Helper()
			var got []int64
			for _, t := range must(s.List(s.Context(), jobs.Filter{States: []jobs.State{jobs.Running}, OldestFirst: true}))(s) {
				if _, is := taskspec.Stuck(&t, s.now); is {
					got = append(got, t.ID)
				}
			}

			if !slices.Equal(got, want) {
				s.Errorf("at %v: got stuck tasks %v, want %v", s.now, got, want)
			}
		}
		s.sleep(19 * time.Second)
		stuck()
		// A command gets SIGKILL 10 s after the request to cancel it. After 20
		// s its task counts as stuck.
		s.sleep(2 * time.Second)
		stuck(claimed[1].ID)
		s.sleep(51 * time.Second)
		stuck(claimed[0].ID, claimed[1].ID)
	},
	"a heartbeat renews and returns the claims of the worker": func(s *store) {
		s.insert(commandSpec(), commandSpec(), commandSpec())
		w, other := s.worker(), s.worker()
		mine, foreign := s.claim(w, 2), s.claimOnly(other)
		s.sleep(10 * time.Second)
		ended := mine[1]
		s.finish(w, ended, taskspec.Outcome{})
		old := claimsOf(mine[0])[0]
		old.GenerationID--
		owned := s.beat(w, slices.Concat(claimsOf(mine...), claimsOf(foreign), []db.ClaimID{old, {ID: 99, GenerationID: 2}})...)
		if !slices.Equal(owned, claimsOf(mine[0])) {
			s.Errorf("got owned claims %v, want %v", owned, claimsOf(mine[0]))
		}
		if got := s.get(mine[0].ID); !got.LeaseExpiresAt.Equal(s.now.Add(lease)) || got.GenerationID != mine[0].GenerationID {
			s.Errorf("got %+v; want lease expires at %v, generation %v", got, s.now.Add(lease), mine[0].GenerationID)
		}
		if got := s.get(foreign.ID); !got.LeaseExpiresAt.Equal(foreign.LeaseExpiresAt) {
			s.Errorf("the task of another worker: got lease end %v, want %v as before", got.LeaseExpiresAt, foreign.LeaseExpiresAt)
		}
	},
	"a heartbeat without tasks updates the worker": func(s *store) {
		w := s.worker()
		s.sleep(time.Second)
		if owned := s.beat(w); len(owned) != 0 {
			s.Errorf("got %v, want none", owned)
		}
		if seen := must(s.Workers(s.Context(), s.now))(s); len(seen) != 1 || !seen[0].BeatAt.Equal(s.now) {
			s.Errorf("got workers %+v, want one with a heartbeat at %v", seen, s.now)
		}
	},
	"a heartbeat extends the lease even after the clock is set back": func(s *store) {
		s.insert(commandSpec())
		w := s.worker()
		claimed := s.claimOnly(w)
		for range 3 {
			before := s.get(claimed.ID).LeaseExpiresAt
			s.sleep(-time.Hour)
			s.beat(w, claimsOf(claimed)...)
			if after := s.get(claimed.ID).LeaseExpiresAt; !after.After(before) {
				s.Errorf("got %v, want after %v", after, before)
			}
		}
	},
	"a worker sees the leases of all others": func(s *store) {
		s.insert(commandSpec(), commandSpec(), commandSpec())
		w, other := s.worker(), s.worker()
		mine, foreign := s.claimOne(w), s.claim(other, 2)
		got := s.leases(w)
		slices.SortFunc(got, func(a, b db.Lease) int { return int(a.ID - b.ID) })
		if len(got) != 2 || got[0].ClaimID != claimsOf(foreign...)[0] || got[0].WorkerID != other.ID() ||
			got[0].Length != lease.Milliseconds() ||
			got[0].ExpiresAt != s.now.Add(lease).UnixMilli() {
			s.Errorf("got leases %+v; want two, the first of claim %v, worker %s, length %d ms, end %d",
				got, claimsOf(foreign...)[0], other.ID(), lease.Milliseconds(), s.now.Add(lease).UnixMilli())
		}
		if got := s.leases(other); len(got) != 1 || got[0].ID != mine.ID {
			s.Errorf("got leases %+v, want one of task %d", got, mine.ID)
		}
		if owned := must(w.Owned(s.Context()))(s); !slices.Equal(owned, claimsOf(mine)) {
			s.Errorf("got %v, want %v", owned, claimsOf(mine))
		}
	},
	"a lease of an unknown worker has no length": func(s *store) {
		s.insert(commandSpec())
		w, other := s.worker(), s.worker()
		s.claimOnly(other)
		s.exec(`DELETE FROM workers WHERE id = ?`, other.ID())
		if got := s.leases(w); len(got) != 1 || got[0].Length != 0 {
			s.Errorf("got leases %+v, want one of length 0", got)
		}
	},
	"a lost task runs again with the same attempt number": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, reaper := s.worker(), s.worker()
		claimed := s.claimOnly(w)
		s.sleep(time.Minute)
		if n := s.reap(reaper, s.leases(reaper)...); n != 1 {
			s.Errorf("got %v, want 1", n)
		}

		got := s.wantTask(id, jobs.Pending, jobs.ReasonLost)
		if got.Losses != 1 || got.Attempt != 0 || got.WorkerID != w.ID() {
			s.Errorf("got losses %v, attempt %v, worker id %v; want 1, 0, %v", got.Losses, got.Attempt, got.WorkerID, w.ID())
		}
		if a := s.attempts(id); len(a) != 1 || a[0].State != jobs.Failed || a[0].Reason != jobs.ReasonLost || a[0].Counted ||
			a[0].GenerationID != claimed.GenerationID ||
			a[0].WorkerID != w.ID() || a[0].Duration != time.Minute {
			s.Errorf("got attempts %+v; want one: %s (%s), not counted, generation %d, worker %s, duration %v",
				a, jobs.Failed, jobs.ReasonLost, claimed.GenerationID, w.ID(), time.Minute)
		}
		if again := s.claimOnly(reaper); again.Attempt != 1 || again.Losses != 1 {
			s.Errorf("the next claim: got attempt %d, %d losses; want 1, 1", again.Attempt, again.Losses)
		}
	},
	"a task that exceeds its losses fails": func(s *store) {
		id := s.insert(commandSpec(jobs.MaxLosses(2)))[0]
		reaper := s.worker()
		for i := range 3 {
			w := s.worker()
			s.claimOnly(w)
			s.reap(reaper, s.leases(reaper)...)
			if got := s.get(id); got.Losses != i+1 {
				s.Errorf("got losses %v, want %v", got.Losses, i+1)
			}
		}

		if got := s.wantTask(id, jobs.Failed, jobs.ReasonLost); got.Attempt != 0 || s.counted()[jobs.Failed] != 1 {
			s.Errorf("got %+v, counts %v; want attempt 0 and one failed task counted", got, s.counted())
		}

		s.apply(db.Retry(s.now, s.now, false), id)
		if got := s.wantTask(id, jobs.Pending, ""); got.Losses != 0 {
			s.Errorf("got losses %v, want 0", got.Losses)
		}
	},
	"an at-most-once task ends with its first loss or stop": func(s *store) {
		reaper := s.worker()
		w := s.worker()
		id := s.insert(commandSpec(jobs.AtMostOnce()))[0]
		s.claimOnly(w)
		s.reap(reaper, s.leases(reaper)...)
		s.wantTask(id, jobs.Failed, jobs.ReasonLost)
		id = s.insert(commandSpec(jobs.AtMostOnce()))[0]
		s.finish(w, s.claimOnly(w), taskspec.Outcome{Reason: jobs.ReasonShutdown})
		s.wantTask(id, jobs.Failed, jobs.ReasonShutdown)
		id = s.insert(commandSpec(jobs.AtMostOnce()))[0]
		s.finishAll(w, db.Finish{Task: s.claimOnly(w), Release: true}) // the attempt never started, so AtMostOnce lets the task run later
		s.wantTask(id, jobs.Pending, "")
	},
	"a heartbeat between reading the leases and the reap keeps the task": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, reaper := s.worker(), s.worker()
		claimed := s.claimOnly(w)
		seen := s.leases(reaper)
		s.beat(w, claimsOf(claimed)...)
		if n := s.reap(reaper, seen...); n != 0 {
			s.Errorf("got %v, want 0", n)
		}
		s.wantTask(id, jobs.Running, "")
	},
	"a finish between reading the leases and the reap is kept": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, reaper := s.worker(), s.worker()
		claimed := s.claimOnly(w)
		seen := s.leases(reaper)
		s.finish(w, claimed, taskspec.Outcome{})
		if n := s.reap(reaper, seen...); n != 0 {
			s.Errorf("got %v, want 0", n)
		}
		s.wantTask(id, jobs.Completed, "")
	},
	"two reapers reap a task once": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, a, b := s.worker(), s.worker(), s.worker()
		s.claimOnly(w)
		seen := s.leases(a)
		if n := s.reap(a, seen...) + s.reap(b, seen...) + s.reap(a, append(seen, seen...)...); n != 1 {
			s.Errorf("got %v, want 1", n)
		}
		if got := s.get(id); got.Losses != 1 {
			s.Errorf("got losses %v, want 1", got.Losses)
		}
	},
	"a lost task with a cancel request is cancelled": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, reaper := s.worker(), s.worker()
		s.claimOnly(w)
		s.apply(db.Cancel("by ann", false, s.now), id)
		s.reap(reaper, s.leases(reaper)...)
		if got := s.wantTask(id, jobs.Cancelled, jobs.ReasonCancelled); got.Error != "by ann" || s.counted()[jobs.Cancelled] != 1 {
			s.Errorf("got %+v, counts %v; want error \"by ann\" and one cancelled task counted", got, s.counted())
		}
	},
	"unacknowledged claims are released without an attempt": func(s *store) {
		id := s.insert(commandSpec())[0]
		w := s.worker()
		s.claim(w, 1) // the test ignores these claims, like a worker that has not received the reply
		owned := must(w.Owned(s.Context()))(s)
		for range 2 { // the second release has no effect
			if err := w.Release(s.Context(), owned, s.now); err != nil {
				s.Error(err)
			}
		}

		if got := s.wantTask(id, jobs.Pending, ""); got.Attempt != 0 || got.Losses != 0 || len(s.attempts(id)) != 0 {
			s.Errorf("got attempt %d, %d losses, %d stored attempts; want 0 of each", got.Attempt, got.Losses,
				len(s.attempts(id)))
		}
	},
	"a worker registers, drains and ends": func(s *store) {
		info := db.WorkerInfo{Name: "web1:7", Host: "web1", BootID: "b", PID: 7, User: "ann", Version: "1", Slots: 3,
			Lease: lease, StartedAt: s.now,
			Queues: []jobs.QueueMax{{Name: "a", Max: 2}, {Name: "b"}}, Jobs: []string{"f", "g"}}
		w := must(s.Register(s.Context(), info, []db.ClaimJob{{Job: "f"}, {Job: "g"}}))(s)
		s.insert(functionSpec("f"), functionSpec("g"))
		claimed := s.claim(w, 2)
		for _, err := range []error{w.Drain(s.Context()), w.Sync(s.Context(), s.now.Add(time.Second))} {
			if err != nil {
				s.Error(err)
			}
		}

		got := must(s.Workers(s.Context(), s.now))(s)
		if len(got) != 1 || got[0].ID != w.ID() || got[0].Name != "web1:7" || got[0].PID != 7 || got[0].State != db.WorkerDraining ||
			got[0].Lease != lease || len(got[0].Queues) != 2 ||
			got[0].Queues[0] != info.Queues[0] || !slices.Equal(got[0].Jobs, []string{"f", "g"}) ||
			!slices.Equal(got[0].Running, ids(claimed)) ||
			!got[0].BeatAt.Equal(s.now.Add(time.Second)) || got[0].Slots != 3 || got[0].Host != "web1" || got[0].User != "ann" ||
			got[0].Version != "1" {
			s.Errorf("got workers %+v; want one with id %s, the values of %+v, draining, jobs f and g, running tasks %v, heartbeat at %v",
				got, w.ID(), info, ids(claimed), s.now.Add(time.Second))
		}
		if got := must(s.Workers(s.Context(), s.now.Add(time.Minute)))(s); len(got) != 0 {
			s.Errorf("a minute later: got workers %+v, want none", got)
		}
		if err := w.End(s.Context(), s.now); err != nil {
			s.Error(err)
		}
		if got := must(s.Workers(s.Context(), start))(s); len(got) != 0 {
			s.Errorf("got %+v, want none", got)
		}
	},
}

// claimOne claims one of several tasks.
func (s *store) claimOne(w *db.Worker) jobs.Task {
	s.Helper()
	claimed := s.claim(w, 1)
	if len(claimed) != 1 {
		s.Fatalf("got claims %v, want one", ids(claimed))
	}
	return claimed[0]
}

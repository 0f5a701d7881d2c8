package dbtest

import (
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func runningLimits(s *store) {
	t, w := s.T, newOrderStore(s)
	for range 5 {
		w.add(jobs.Queue("a"))
		w.add(jobs.Queue("b"))
	}

	w.setLimit(db.Limit{Target: db.Target{Kind: "queue", Name: "a"}, Running: 2})
	count := func(tasks []jobs.Task, queue string) (n int) {
		for _, task := range tasks {
			if task.Queue == queue {
				n++
			}
		}
		return n
	}
	claimed := w.claim(20)
	if count(claimed, "a") != 2 || count(claimed, "b") != 5 {
		t.Fatalf("got %d claims of queue a and %d of queue b, want 2 and 5", count(claimed, "a"), count(claimed, "b"))
	}
	if more := w.claim(20); len(more) != 0 {
		t.Fatalf("got %v, want none", ids(more))
	}

	i := slices.IndexFunc(claimed, func(t jobs.Task) bool { return t.Queue == "a" })
	w.finish(claimed[i], nil)
	if more := w.claim(20); count(more, "a") != 1 {
		t.Fatalf(`got count(more, "a") %v, want 1`, count(more, "a"))
	}

	w.setLimit(db.Limit{Target: db.Target{Kind: "queue", Name: "a"}, Running: 3})
	if more := w.claim(20); count(more, "a") != 1 {
		t.Fatalf(`got count(more, "a") %v, want 1`, count(more, "a"))
	}
	if found, err := w.RemoveLimit(t.Context(), db.Target{Kind: "queue", Name: "a"}, w.now); !found || err != nil {
		t.Fatalf("remove the limit: got found: %v and error %v, want found", found, err)
	}
	if more := w.claim(20); count(more, "a") != 1 {
		t.Fatalf(`got count(more, "a") %v, want 1`, count(more, "a"))
	}
}

// aJobsLimitHoldsWithinOneClaim claims tasks of two jobs from one queue. The
// limit of one job permits only a few more starts, and the other job has no
// limit.
func aJobsLimitHoldsWithinOneClaim(s *store) {
	t, w := s.T, newOrderStore(s)
	other := jobs.Define[string]("other")
	var specs []jobs.Spec
	for range 30 {
		specs = append(specs, job.With("x", jobs.Priority(9)), other.With("y"))
	}

	if _, err := w.Insert(t.Context(), specs, w.now); err != nil {
		t.Fatal(err)
	}

	w.setLimit(db.Limit{Target: db.Target{Kind: "job", Name: "test"}, Running: 3})
	claimed := w.claim(10)
	n := 0
	for _, task := range claimed {
		if task.Job == "test" {
			n++
		}
	}

	if len(claimed) != 10 || n != 3 || claimed[0].Job != "test" {
		t.Fatalf("got %d claims, %d of them of job test; want 10, 3 of them of job test and one of these first", len(claimed), n)
	}
	if claimed = w.claim(10); len(claimed) != 10 || slices.ContainsFunc(claimed, func(t jobs.Task) bool { return t.Job == "test" }) {
		t.Fatalf("got claims %v, want 10 of other jobs", ids(claimed))
	}
}

// aLimitedSuspectBlocksNoOtherTask checks that busy workers claim nothing while
// a suspect waits, but continue to claim while a limit blocks this suspect.
func aLimitedSuspectBlocksNoOtherTask(s *store) {
	w := newOrderStore(s)
	lost := w.add(jobs.MaxLosses(2))
	dead := s.worker("test", "other")
	s.claim(dead, 1)
	if reaped := must(revokeAndReap(s.Context(), w.w, must(w.w.Leases(s.Context()))(s), s.now))(s); len(reaped) != 1 ||
		!taskspec.Suspect(s.get(lost)) {
		s.Fatalf("got %d reaped tasks, suspect %v; want 1, true", len(reaped), taskspec.Suspect(s.get(lost)))
	}

	other := must(s.Insert(s.Context(), []jobs.Spec{jobs.Define[string]("other").With("x"),
		jobs.Define[string]("other").With("x")}, s.now))(s)
	target := db.Target{Kind: db.JobTarget, Name: "test"}
	w.setLimit(db.Limit{Target: target, Rate: 1, Per: 24 * time.Hour, Burst: 1})
	s.sleep(time.Second)
	claimIDs := func(idle bool) []int64 {
		return ids(w.cycle(db.Cycle{Look: true, Claim: db.Claim{Free: 1, Idle: idle, Lease: lease}}).Claimed)
	}
	w.add(jobs.Priority(9))
	s.wantIDs(claimIDs(true), []int64{lost}) // the rate permits exactly one start, which this claim uses
	if reaped := must(revokeAndReap(s.Context(), dead, must(dead.Leases(s.Context()))(s), s.now))(s); len(reaped) != 1 {
		s.Fatalf("got %+v, want 1 of them", reaped)
	}

	s.sleep(time.Hour)
	s.wantIDs(claimIDs(false), []int64{other[0].ID})
	must(s.RemoveLimit(s.Context(), target, s.now))(s)
	s.wantIDs(claimIDs(false), nil) // without a limit the suspect can run, but only in an idle worker; a busy worker claims nothing
	s.wantIDs(claimIDs(true), []int64{lost})
}

func rateLimitsReturnTheNextStart(s *store) {
	t, w := s.T, newOrderStore(s)
	for range 100 {
		w.add()
	}

	l := db.Limit{Target: db.Target{Kind: "queue", Name: "default"}, Rate: 5, Per: time.Second, Burst: 1}
	w.setLimit(l)
	began := w.now
	var starts []time.Time
	for w.now.Sub(began) < 10*time.Second {
		w.setLimit(l) // setting the same limit again permits no extra start
		done := w.cycle(db.Cycle{Look: true, Claim: db.Claim{Free: 10, Lease: time.Minute}})
		for range done.Claimed {
			starts = append(starts, w.now)
		}

		if done.NextStart.IsZero() || !done.NextStart.After(w.now) {
			t.Fatalf("got next start %v, want one after %v", done.NextStart, w.now)
		}
		w.now = done.NextStart
	}

	if len(starts) != 50 {
		t.Fatalf("got %d starts in ten seconds, want 50", len(starts))
	}

	for i := range starts[6:] {
		if starts[i+6].Sub(starts[i]) < time.Second {
			t.Fatalf("got starts at %v and %v, want at most six in a second", starts[i], starts[i+6])
		}
	}

	for len(w.claim(10)) > 0 {
		w.now = w.now.Add(time.Minute)
	}
}

// theLimitOfTheDatabase sets a limit for all tasks of the database, and a limit
// of a queue at the same time. Both must hold.
func theLimitOfTheDatabase(s *store) {
	t, w := s.T, newOrderStore(s)
	for range 4 {
		w.add(jobs.Queue("a"))
		w.add(jobs.Queue("b"))
		w.add(jobs.Queue("c"))
	}

	all := db.Target{Kind: db.AllTarget}
	w.setLimit(db.Limit{Target: all, Running: 4})
	w.setLimit(db.Limit{Target: db.Target{Kind: "queue", Name: "a"}, Running: 1})
	claimed := w.claim(20)
	queues := map[string]int{}
	for _, task := range claimed {
		queues[task.Queue]++
	}

	if len(claimed) != 4 || queues["a"] != 1 || queues["b"] == 0 || queues["c"] == 0 {
		t.Fatalf("got %d claims, by queue %v; want 4, one of queue a and the others of both other queues", len(claimed), queues)
	}

	other := w.worker("test", "other")
	s.wantIDs(ids(s.claim(other, 20)), nil)
	w.finish(claimed[0], nil)
	if got := s.claim(other, 20); len(got) != 1 {
		t.Fatalf("got claims %v, want one", ids(got))
	}
	if found := must(w.RemoveLimit(t.Context(), all, w.now))(s); !found {
		t.Fatal("got no limit, want one")
	}

	w.setLimit(db.Limit{Target: all, Rate: 2, Per: time.Minute, Burst: 2})
	if got := w.claim(20); len(got) != 2 {
		t.Fatalf("got claims %v, want two", ids(got))
	}

	done := w.cycle(db.Cycle{Claim: db.Claim{Free: 20, Lease: lease}})
	if len(done.Claimed) != 0 || !done.NextStart.Equal(w.now.Add(30*time.Second)) {
		t.Fatalf("got %d claims and next start %v, want none and %v", len(done.Claimed), done.NextStart, w.now.Add(30*time.Second))
	}
}

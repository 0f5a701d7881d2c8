package dbtest

import (
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

func aLaneRunsOneAtATimeInOrder(s *store) {
	t, w := s.T, newOrder(s)
	a := w.add(jobs.Lane("l"))
	b := w.add(jobs.Lane("l"), jobs.Queue("other"))
	c := w.add(jobs.Lane("l"), jobs.Priority(9))
	soon := w.add(jobs.Lane("l"), jobs.Priority(99), jobs.In(time.Minute))
	w.is(b, jobs.Blocked)
	w.is(soon, jobs.Scheduled)
	task := w.claim(10)
	if !slices.Equal(ids(task), []int64{a}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a})
	}
	// A retry keeps the place, whoever comes.
	if done := w.finish(task[0], errBad); done.Change.State != jobs.Retrying {
		t.Fatalf("got change state %v, want %v", done.Change.State, jobs.Retrying)
	}
	if got := w.claim(10); len(got) != 0 {
		t.Fatalf("got %v, want none", ids(got))
	}
	w.now = w.now.Add(2 * time.Second)
	task = w.claim(10)
	if !slices.Equal(ids(task), []int64{a}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a})
	}
	// A loss keeps it too.
	leases, _ := w.worker("x").Leases(t.Context())
	if _, err := lose(t.Context(), w.worker("x"), leases, w.now); err != nil {
		t.Fatal(err)
	}
	w.is(a, jobs.Pending)
	w.is(c, jobs.Blocked)
	// Snoozing gives it up.
	task = w.claim(10)
	if done := w.finish(task[0], jobs.Snooze(time.Hour)); done.Change.State != jobs.Scheduled {
		t.Fatalf("got change state %v, want %v", done.Change.State, jobs.Scheduled)
	}
	w.now = w.now.Add(2 * time.Minute)
	for _, want := range []int64{c, soon, b} { // c took the lane when it became free
		task = w.claim(10)
		if !slices.Equal(ids(task), []int64{want}) {
			t.Fatal(ids(task), want)
		}
		w.finish(task[0], nil)
	}
	w.now = w.now.Add(time.Hour)
	if task = w.claim(10); !slices.Equal(ids(task), []int64{a}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a})
	}
}

func aTaskThatWaitsDoesNotHoldItsLane(s *store) {
	w := newOrder(s)
	a := w.add(jobs.Queue("slow"))
	b := w.add(jobs.Lane("l"), jobs.After(a))
	c := w.add(jobs.Lane("l"))
	w.is(b, jobs.Blocked)
	w.is(c, jobs.Pending)
	for _, task := range w.claim(2) {
		w.finish(task, nil)
	}
	w.is(b, jobs.Pending)
}

func aLanesRate(s *store) {
	t, w := s.T, newOrder(s)
	w.set(jobs.Limit{Target: jobs.Target{Kind: "lane", Name: "l"}, Rate: 1, Per: time.Minute, Burst: 1})
	a, b := w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	c := w.add(jobs.Lane("m"))
	task := w.claim(10)
	if !slices.Equal(ids(task), []int64{a, c}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a, c})
	}
	w.finish(task[0], nil)
	w.is(b, jobs.Blocked)
	done := w.turn(db.Turn{Look: true, Claim: db.Claim{Free: 10, Lease: time.Minute}})
	if len(done.Claimed) != 0 || !done.NextDue.Equal(w.now.Add(time.Minute)) {
		t.Fatalf("got number of claimed %v, next due %v; want 0, %v", len(done.Claimed), done.NextDue, w.now.Add(time.Minute))
	}
	w.now = done.NextDue
	if task := w.claim(10); !slices.Equal(ids(task), []int64{b}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{b})
	} else if done := w.finish(task[0], errBad); done.Change.State != jobs.Retrying {
		t.Fatalf("got change state %v, want %v", done.Change.State, jobs.Retrying)
	}
	d := w.add(jobs.Lane("l"))
	w.now = w.now.Add(time.Second + 200*time.Millisecond) // the retry is due, the rate is not
	if task := w.claim(10); len(task) != 0 {
		t.Fatalf("got %v, want none", ids(task))
	}
	w.is(b, jobs.Retrying)
	if found, err := w.RemoveLimit(t.Context(), jobs.Target{Kind: "lane", Name: "l"}, w.now); !found || err != nil {
		t.Fatalf("got found %v, error %v; want true, nil", found, err)
	}
	w.now = w.now.Add(time.Minute)
	task = w.claim(10)
	if !slices.Equal(ids(task), []int64{b}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{b})
	}
	w.finish(task[0], nil)
	w.is(d, jobs.Pending)
}

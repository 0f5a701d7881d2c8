package dbtest

import (
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

func aLaneRunsOneAtATimeInOrder(s *store) {
	t, w := s.T, newOrderStore(s)
	a := w.add(jobs.Lane("l"))
	b := w.add(jobs.Lane("l"), jobs.Queue("other"))
	c := w.add(jobs.Lane("l"), jobs.Priority(9))
	soon := w.add(jobs.Lane("l"), jobs.Priority(99), jobs.In(time.Minute))
	w.wantState(b, jobs.Blocked)
	w.wantState(soon, jobs.Scheduled)
	task := w.claim(10)
	if !slices.Equal(ids(task), []int64{a}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a})
	}
	// A retrying task keeps its lane.
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
	// A lost task keeps its lane.
	leases, _ := w.worker("x").Leases(t.Context())
	if _, err := revokeAndReap(t.Context(), w.worker("x"), leases, w.now); err != nil {
		t.Fatal(err)
	}
	w.wantState(a, jobs.Pending)
	w.wantState(c, jobs.Blocked)
	// A snoozed task releases its lane.
	task = w.claim(10)
	if done := w.finish(task[0], jobs.Snooze(time.Hour)); done.Change.State != jobs.Scheduled {
		t.Fatalf("got change state %v, want %v", done.Change.State, jobs.Scheduled)
	}
	w.now = w.now.Add(2 * time.Minute)
	for _, want := range []int64{c, soon, b} { // c had the highest priority when the lane became free
		task = w.claim(10)
		if !slices.Equal(ids(task), []int64{want}) {
			t.Fatalf("got claims %v, want %v", ids(task), []int64{want})
		}
		w.finish(task[0], nil)
	}
	w.now = w.now.Add(time.Hour)
	if task = w.claim(10); !slices.Equal(ids(task), []int64{a}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a})
	}
}

func aTaskThatWaitsDoesNotHoldItsLane(s *store) {
	w := newOrderStore(s)
	a := w.add(jobs.Queue("slow"))
	b := w.add(jobs.Lane("l"), jobs.After(a))
	c := w.add(jobs.Lane("l"))
	w.wantState(b, jobs.Blocked)
	w.wantState(c, jobs.Pending)
	for _, task := range w.claim(2) {
		w.finish(task, nil)
	}
	w.wantState(b, jobs.Pending)
}

func rateOfALane(s *store) {
	t, w := s.T, newOrderStore(s)
	w.setLimit(jobs.Limit{Target: jobs.Target{Kind: "lane", Name: "l"}, Rate: 1, Per: time.Minute, Burst: 1})
	a, b := w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	c := w.add(jobs.Lane("m"))
	task := w.claim(10)
	if !slices.Equal(ids(task), []int64{a, c}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{a, c})
	}
	w.finish(task[0], nil)
	w.wantState(b, jobs.Blocked)
	done := w.cycle(db.Cycle{Look: true, Claim: db.Claim{Free: 10, Lease: time.Minute}})
	if len(done.Claimed) != 0 || !done.NextDue.Equal(w.now.Add(time.Minute)) {
		t.Fatalf("got %d claims and next due time %v, want none and %v", len(done.Claimed), done.NextDue, w.now.Add(time.Minute))
	}
	w.now = done.NextDue
	if task := w.claim(10); !slices.Equal(ids(task), []int64{b}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{b})
	} else if done := w.finish(task[0], errBad); done.Change.State != jobs.Retrying {
		t.Fatalf("got change state %v, want %v", done.Change.State, jobs.Retrying)
	}
	d := w.add(jobs.Lane("l"))
	w.now = w.now.Add(time.Second + 200*time.Millisecond) // the retry is due, but the rate limit blocks it
	if task := w.claim(10); len(task) != 0 {
		t.Fatalf("got %v, want none", ids(task))
	}
	w.wantState(b, jobs.Retrying)
	if found, err := w.RemoveLimit(t.Context(), jobs.Target{Kind: "lane", Name: "l"}, w.now); !found || err != nil {
		t.Fatalf("remove the limit: got found: %v and error %v, want found", found, err)
	}
	w.now = w.now.Add(time.Minute)
	task = w.claim(10)
	if !slices.Equal(ids(task), []int64{b}) {
		t.Fatalf("got %+v, want %+v", ids(task), []int64{b})
	}
	w.finish(task[0], nil)
	w.wantState(d, jobs.Pending)
}

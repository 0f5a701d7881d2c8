package dbtest

import (
	"fmt"
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
	for _, want := range []int64{c, soon, b} { // when the lane became free, task c had the highest priority
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
	b := w.add(jobs.Lane("l"), jobs.DependsOn(a))
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
	w.setLimit(db.Limit{Target: db.Target{Kind: "lane", Name: "l"}, Rate: 1, Per: time.Minute, Burst: 1})
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
	if found, err := w.RemoveLimit(t.Context(), db.Target{Kind: "lane", Name: "l"}, w.now); !found || err != nil {
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

// aLaneWithALimitRunsAFewAtATime raises and lowers the number of tasks that may
// hold a lane at the same time.
func aLaneWithALimitRunsAFewAtATime(s *store) {
	t, w := s.T, newOrderStore(s)
	target := db.Target{Kind: "lane", Name: "l"}
	w.setLimit(db.Limit{Target: target, Running: 2})
	var added []int64
	for range 6 {
		added = append(added, w.add(jobs.Lane("l")))
	}

	want := func(claimed []jobs.Task, want ...int64) {
		t.Helper()
		if !slices.Equal(ids(claimed), want) {
			t.Fatalf("got claims %v, want %v", ids(claimed), want)
		}
	}
	first := w.claim(10)
	want(first, added[0], added[1])
	if holders := must(w.LaneHolders(t.Context(), "l"))(s); !slices.Equal(holders, added[:2]) {
		t.Fatalf("got holders %v, want %v", holders, added[:2])
	}

	// A lost task and a retrying task keep their slots of the lane.
	w.finish(first[0], errBad)
	leases := must(w.worker("x").Leases(t.Context()))(s)
	if reaped := must(revokeAndReap(t.Context(), w.worker("x"), leases, w.now))(s); len(reaped) != 1 {
		t.Fatalf("got %d reaped tasks, want 1", len(reaped))
	}

	second := w.claim(10)
	want(second, added[1])
	w.now = w.now.Add(2 * time.Second)
	third := w.claim(10)
	want(third, added[0])
	// When a task ends, its slot of the lane goes to the next task. The test
	// checks this for two slots.
	w.finish(second[0], nil)
	fourth := w.claim(10)
	want(fourth, added[2])
	w.finish(third[0], nil)
	fifth := w.claim(10)
	want(fifth, added[3])
	// A lower limit applies to later starts: no task starts until both running
	// tasks have ended.
	if !must(w.RemoveLimit(t.Context(), target, w.now))(s) {
		t.Fatal("got no limit, want one")
	}

	w.finish(fourth[0], nil)
	want(w.claim(10))
	w.finish(fifth[0], nil)
	want(w.claim(10), added[4])
	// A higher limit applies immediately.
	w.setLimit(db.Limit{Target: target, Running: 3})
	want(w.claim(10), added[5])
}

// aLaneMayHaveARateAndARunningLimit checks that the rate of a lane counts a
// task as soon as the task gets the lane, even if the task has not started.
func aLaneMayHaveARateAndARunningLimit(s *store) {
	w := newOrderStore(s)
	w.setLimit(db.Limit{Target: db.Target{Kind: "lane", Name: "l"}, Running: 3, Rate: 1, Per: time.Minute, Burst: 2})
	var added []int64
	for range 4 {
		added = append(added, w.add(jobs.Lane("l")))
	}

	for i, state := range []jobs.State{jobs.Pending, jobs.Pending, jobs.Blocked, jobs.Blocked} {
		w.wantState(added[i], state)
	}

	s.wantIDs(ids(w.claim(10)), added[:2])
	next := w.cycle(db.Cycle{Look: true}).NextDue
	if !next.Equal(w.now.Add(time.Minute)) {
		s.Fatalf("got next due time %v, want a minute later, %v", next, w.now.Add(time.Minute))
	}

	w.now = next
	s.wantIDs(ids(w.claim(10)), added[2:3])
	w.now = w.now.Add(time.Hour)
	s.wantIDs(ids(w.claim(10)), nil) // three tasks hold the lane, as many as its limit allows
}

// aSlotOfALaneHasOneHolder gives one slot of a lane to two tasks with plain
// SQL. The index tasks_lane must reject this.
func aSlotOfALaneHasOneHolder(s *store) {
	w := newOrderStore(s)
	w.add(jobs.Lane("l"))
	b := w.add(jobs.Lane("l"))
	text := fmt.Sprintf(`UPDATE tasks SET state = 'pending', waits = NULL WHERE id = %d`, b)
	if _, err := s.raw.ExecContext(s.Context(), s.statement(text)); err == nil {
		s.Error("got two holders of one slot, want an error")
	}
}

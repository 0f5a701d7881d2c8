package dbtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// orders are about what decides which task starts next: other tasks, lanes, limits, age.
var orders = group{
	"a task that replaces another takes its place among others": replacing,
	"after starts when all have completed":                      afterStartsWhenAllHaveCompleted,
	"ends do not need dependents that wait":                     endsDoNotNeedDependentsThatWait,
	"failure cancels down a chain in one transaction":           failureCancelsDownAChainInOneTransaction,
	"what has ended counts as if it ended now":                  whatHasEndedCountsAsIfItEndedNow,
	"every end releases":                                        everyEndReleases,
	"retry with dependents":                                     retryWithDependents,
	"a huge fan in and fan out":                                 aHugeFanInAndFanOut,
	"a lane runs one at a time in order":                        aLaneRunsOneAtATimeInOrder,
	"a task that waits does not hold its lane":                  aTaskThatWaitsDoesNotHoldItsLane,
	"running limits":                                            runningLimits,
	"a jobs limit holds within one claim":                       aJobsLimitHoldsWithinOneClaim,
	"rates hold and tell when the next may start":               ratesHoldAndTellWhenTheNextMayStart,
	"a lanes rate":                                              aLanesRate,
	"a suspect that a limit holds holds nobody else":            aSuspectThatALimitHoldsHoldsNobodyElse,
	"ageing": ageing,
}

// order is a store with one worker, which can run two jobs.
type order struct {
	*store
	w *db.Worker
}

func newOrder(s *store) *order { return &order{s, s.worker("test", "other")} }

var job = jobs.Define[string]("test", jobs.MaxAttempts(3), jobs.Retry(jobs.Backoff{Strategy: jobs.Fixed, Delay: time.Second}))

func (w *order) add(options ...jobs.Option) int64 {
	w.Helper()
	id, err := w.tryAdd(options...)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *order) tryAdd(options ...jobs.Option) (int64, error) {
	w.Helper()
	spec := job.With("x", options...)
	if err := spec.Validate(); err != nil {
		w.Fatal(err)
	}
	added, err := w.Insert(w.Context(), []jobs.Spec{spec}, w.now)
	if err != nil {
		return 0, err
	}
	return added[0].ID, nil
}

func (w *order) turn(turn db.Turn) db.Turned {
	w.Helper()
	turn.Now = w.now
	return must(w.w.Turn(w.Context(), turn))(w)
}

// claim takes up to free tasks, after a look.
func (w *order) claim(free int) []jobs.Task { w.Helper(); return w.store.claim(w.w, free) }

func (w *order) finish(task jobs.Task, err error) db.Finished {
	w.Helper()
	return w.store.finish(w.w, task, jobs.OutcomeOf(nil, err))
}

func (w *order) is(id int64, state jobs.State) jobs.Task {
	w.Helper()
	task := w.get(id)
	if task.State != state {
		w.Fatalf("task %d is %s (%s), not %s", id, task.State, task.Error, state)
	}
	return task
}

func (w *order) set(l jobs.Limit) {
	w.Helper()
	if err := cmp.Or(l.Validate(), w.SetLimit(w.Context(), l, w.now)); err != nil {
		w.Fatal(err)
	}
}

var errBad = errors.New("bad")

// A dependent that was set to pending by hand, before its time, does not keep the tasks from ending that it named.
func endsDoNotNeedDependentsThatWait(s *store) {
	t, w := s.T, newOrder(s)
	completes, fails := w.add(), w.add(jobs.MaxAttempts(1))
	freed, spared := w.add(jobs.After(completes)), w.add(jobs.After(fails))
	s.exec(`UPDATE tasks SET state = 'pending', waits = NULL, generation_id = generation_id + 1 WHERE waits = 1`)
	claimed := w.claim(10)
	if want := []int64{completes, fails, freed, spared}; !slices.Equal(ids(claimed), want) {
		t.Fatalf("got %v, want %v", ids(claimed), want)
	}
	for i, err := range []error{nil, errBad, nil, nil} {
		w.finish(claimed[i], err)
	}
	w.is(completes, jobs.Completed)
	w.is(fails, jobs.Failed)
	w.is(freed, jobs.Completed)
	w.is(spared, jobs.Completed)
}

func afterStartsWhenAllHaveCompleted(s *store) {
	t, w := s.T, newOrder(s)
	a, b := w.add(), w.add()
	c := w.add(jobs.After(a), jobs.AfterAny(b, a))
	if task := w.is(c, jobs.Blocked); !slices.Equal(task.After, []int64{a}) || !slices.Equal(task.AfterAny, []int64{b}) || !task.Depends {
		t.Fatalf("%+v", task)
	}
	claimed := w.claim(10)
	if !slices.Equal(ids(claimed), []int64{a, b}) {
		t.Fatal(ids(claimed))
	}
	w.finish(claimed[0], nil)
	if task := w.is(c, jobs.Blocked); len(task.After) != 0 || !slices.Equal(task.AfterAny, []int64{b}) {
		t.Fatalf("%+v", task)
	}
	w.finish(claimed[1], jobs.Cancel(errBad))
	w.is(c, jobs.Pending)
	if claimed := w.claim(10); len(claimed) != 1 || !claimed[0].Depends || claimed[0].Waits {
		t.Fatalf("%+v", claimed)
	}
}

func failureCancelsDownAChainInOneTransaction(s *store) {
	t, w := s.T, newOrder(s)
	a := w.add(jobs.MaxAttempts(1))
	b := w.add(jobs.After(a))
	c := w.add(jobs.After(b), jobs.Lane("l"))
	d := w.add(jobs.AfterAny(c))
	w.finish(w.claim(1)[0], errBad)
	if task := w.is(b, jobs.Cancelled); task.Reason != jobs.ReasonDependency || task.Error != fmt.Sprintf("task %d failed", a) || task.FinishedAt.IsZero() {
		t.Fatalf("%+v", task)
	}
	if task := w.is(c, jobs.Cancelled); task.Error != fmt.Sprintf("task %d cancelled", b) {
		t.Fatalf("%+v", task)
	}
	w.is(d, jobs.Pending)
	stats, err := w.Queues(t.Context(), w.now.Add(-time.Hour))
	if err != nil || stats["default"].Ended[jobs.Cancelled] != 2 || stats["default"].Ended[jobs.Failed] != 1 {
		t.Fatalf("%+v %v", stats["default"], err)
	}
}

func whatHasEndedCountsAsIfItEndedNow(s *store) {
	t, w := s.T, newOrder(s)
	good, bad := w.add(), w.add(jobs.MaxAttempts(1))
	claimed := w.claim(2)
	w.finish(claimed[0], nil)
	w.finish(claimed[1], errBad)
	w.is(w.add(jobs.After(good), jobs.AfterAny(bad)), jobs.Pending)
	w.is(w.add(jobs.After(good), jobs.In(time.Hour)), jobs.Scheduled)
	late := w.add(jobs.After(good, bad))
	if task := w.is(late, jobs.Cancelled); task.Reason != jobs.ReasonDependency || task.Error != fmt.Sprintf("task %d failed", bad) {
		t.Fatalf("%+v", task)
	}
	n, _ := w.Count(t.Context(), jobs.Filter{})
	_, err := w.tryAdd(jobs.After(good, 999))
	if !errors.Is(err, jobs.ErrNotFound) || !strings.Contains(err.Error(), "999") {
		t.Fatal(err)
	}
	if after, _ := w.Count(t.Context(), jobs.Filter{}); after != n {
		t.Fatal("something was enqueued")
	}
}

// everyEndReleases goes through all ways in which a task ends beside finishing.
func everyEndReleases(s *store) {
	w := newOrder(s)
	ends := map[string]func(w *order, id int64){
		"cancel while it waits": func(w *order, id int64) {
			if _, err := w.Cancel(w.Context(), []int64{id}, "by me", false, w.now); err != nil {
				w.Fatal(err)
			}
		},
		"expiry": func(w *order, id int64) {
			w.now = w.now.Add(2 * time.Hour)
			w.turn(db.Turn{Look: true})
		},
		"cancel while it runs": func(w *order, id int64) {
			task := w.claim(1)[0]
			if _, err := w.Cancel(w.Context(), []int64{id}, "by me", false, w.now); err != nil {
				w.Fatal(err)
			}
			w.finish(task, errBad)
		},
		"loss": func(w *order, id int64) {
			w.claim(1)
			leases, err := w.worker("x").Leases(w.Context())
			if err != nil || len(leases) != 1 {
				w.Fatal(leases, err)
			}
			if n, err := lose(w.Context(), w.worker("x"), leases, w.now); len(n) != 1 || err != nil {
				w.Fatal(n, err)
			}
		},
		"release of one to be cancelled": func(w *order, id int64) {
			task := w.claim(1)[0]
			if _, err := w.Cancel(w.Context(), []int64{id}, "by me", false, w.now); err != nil {
				w.Fatal(err)
			}
			if err := w.w.Release(w.Context(), claimsOf(task), w.now); err != nil {
				w.Fatal(err)
			}
		},
	}
	for name, end := range ends {
		first := w.add(jobs.Lane("l"), jobs.ExpiresIn(time.Hour), jobs.MaxLosses(0))
		next, after, any := w.add(jobs.Lane("l")), w.add(jobs.After(first)), w.add(jobs.AfterAny(first))
		w.is(next, jobs.Blocked)
		end(w, first)
		if state := w.get(first).State; !state.Finished() {
			s.Fatal(name, state)
		}
		w.is(next, jobs.Pending)
		w.is(after, jobs.Cancelled)
		w.is(any, jobs.Pending)
		if moved, err := w.Delete(w.Context(), []int64{first}); err != nil || !moved[0].Done {
			s.Fatal(name, moved, err)
		}
		w.is(any, jobs.Pending)
		for _, task := range w.claim(10) {
			w.finish(task, nil)
		}
	}
}

func retryWithDependents(s *store) {
	t, w := s.T, newOrder(s)
	a, other := w.add(jobs.MaxAttempts(1)), w.add(jobs.MaxAttempts(1))
	b := w.add(jobs.After(a))
	c := w.add(jobs.After(b))
	both := w.add(jobs.After(a, other))
	claimed := w.claim(2)
	w.finish(claimed[0], errBad)
	w.finish(claimed[1], errBad)
	w.is(c, jobs.Cancelled)
	moved, err := w.RetryWithDependents(t.Context(), []int64{a}, w.now, w.now)
	if err != nil || len(moved) != 3 {
		t.Fatal(moved, err)
	}
	w.is(a, jobs.Pending)
	w.is(b, jobs.Blocked)
	w.is(c, jobs.Blocked)
	w.is(both, jobs.Cancelled) // the other one still has not completed
	if _, err := w.RetryWithDependents(t.Context(), []int64{other}, w.now, w.now); err != nil {
		t.Fatal(err)
	}
	if task := w.is(both, jobs.Blocked); !slices.Equal(task.After, []int64{a, other}) {
		t.Fatal(task.After)
	}
	for range 4 {
		for _, task := range w.claim(10) {
			w.finish(task, nil)
		}
	}
	for _, id := range []int64{a, b, c, both} {
		w.is(id, jobs.Completed)
	}
	// Retried by itself, a task does not wait for what has finished.
	if _, err := w.Retry(t.Context(), []int64{b}, w.now, w.now); err != nil {
		t.Fatal(err)
	}
	w.is(b, jobs.Pending)
}

// huge is how many tasks one waits for, or wait for one.
const huge = 10_000

func aHugeFanInAndFanOut(s *store) {
	t, w, n := s.T, newOrder(s), huge
	if raceDetector {
		n /= 20 // it makes the engine slower by that much
	}
	specs := make([]jobs.Spec, n, n+1)
	for i := range specs {
		specs[i] = job.With("x")
	}
	last := job.With("last")
	for i := range n {
		last.Earlier = append(last.Earlier, i)
	}
	added, err := w.Insert(t.Context(), append(specs, last), w.now)
	if err != nil {
		t.Fatal(err)
	}
	end := added[n].ID
	var slowest time.Duration
	for done := 0; done < n; done += 100 {
		w.is(end, jobs.Blocked)
		claimed := w.claim(100)
		finish := make([]db.Finish, len(claimed))
		for i, task := range claimed {
			finish[i] = db.Finish{Task: task, Outcome: jobs.Outcome{Started: w.now, Finished: w.now}}
		}
		began := time.Now()
		w.turn(db.Turn{Finish: finish})
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("fan-in of %d: finishing 100 of them took %v at most", n, slowest)
	for i := range specs {
		specs[i].After = []int64{end}
	}
	if _, err := w.Insert(t.Context(), specs, w.now); err != nil {
		t.Fatal(err)
	}
	task := w.claim(10)
	if len(task) != 1 || task[0].ID != end {
		t.Fatal(ids(task))
	}
	began := time.Now()
	w.finish(task[0], nil)
	t.Logf("fan-out of %d: finishing the one took %v", n, time.Since(began))
	pending, err := w.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}})
	if err != nil || pending != n {
		t.Fatal(pending, err)
	}
}

func replacing(s *store) {
	w := newOrder(s)
	a, b := w.add(), w.add()
	id := w.add(jobs.UniqueReplace("k"), jobs.Lane("l"))
	next := w.add(jobs.Lane("l"))
	w.is(next, jobs.Blocked)
	same := func(options ...jobs.Option) {
		s.Helper()
		if got := w.add(append(options, jobs.UniqueReplace("k"))...); got != id {
			s.Fatalf("task %d, not %d", got, id)
		}
	}
	same(jobs.Lane("l"), jobs.Priority(1)) // who has a lane keeps it
	w.is(id, jobs.Pending)
	same(jobs.After(a)) // and now has none
	w.is(id, jobs.Blocked)
	w.is(next, jobs.Pending)
	same(jobs.Lane("l"), jobs.AfterAny(b))
	if task := w.is(id, jobs.Blocked); len(task.After) != 0 || !slices.Equal(task.AfterAny, []int64{b}) || task.Lane != "l" {
		s.Fatalf("%+v", task)
	}
	follower := w.add(jobs.After(id))
	for _, newer := range []int64{follower, id} {
		before := w.get(id)
		if _, err := w.tryAdd(jobs.UniqueReplace("k"), jobs.After(newer)); !errors.Is(err, jobs.ErrConflict) || !equal(before, w.get(id)) {
			s.Fatal(newer, err)
		}
	}
	same(jobs.In(time.Hour), jobs.Lane("l"))
	w.is(id, jobs.Scheduled)
	same(jobs.Lane("l"))
	w.is(id, jobs.Blocked)
	if _, err := w.Cancel(w.Context(), []int64{a}, "x", false, w.now); err != nil {
		s.Fatal(err)
	}
	same(jobs.After(a))
	s.want(id, jobs.Cancelled, jobs.ReasonDependency)
	s.want(follower, jobs.Cancelled, jobs.ReasonDependency)
}

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
		t.Fatal(ids(task))
	}
	// A retry keeps the place, whoever comes.
	if done := w.finish(task[0], errBad); done.Change.State != jobs.Retrying {
		t.Fatal(done)
	}
	if got := w.claim(10); len(got) != 0 {
		t.Fatal(ids(got))
	}
	w.now = w.now.Add(2 * time.Second)
	task = w.claim(10)
	if !slices.Equal(ids(task), []int64{a}) {
		t.Fatal(ids(task))
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
		t.Fatal(done)
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
		t.Fatal(ids(task))
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

func runningLimits(s *store) {
	t, w := s.T, newOrder(s)
	for range 5 {
		w.add(jobs.Queue("a"))
		w.add(jobs.Queue("b"))
	}
	w.set(jobs.Limit{Target: jobs.Target{Kind: "queue", Name: "a"}, Running: 2})
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
		t.Fatal(ids(claimed))
	}
	if more := w.claim(20); len(more) != 0 {
		t.Fatal(ids(more))
	}
	i := slices.IndexFunc(claimed, func(t jobs.Task) bool { return t.Queue == "a" })
	w.finish(claimed[i], nil)
	if more := w.claim(20); count(more, "a") != 1 {
		t.Fatal(ids(more))
	}
	w.set(jobs.Limit{Target: jobs.Target{Kind: "queue", Name: "a"}, Running: 3})
	if more := w.claim(20); count(more, "a") != 1 {
		t.Fatal(ids(more))
	}
	if found, err := w.RemoveLimit(t.Context(), jobs.Target{Kind: "queue", Name: "a"}, w.now); !found || err != nil {
		t.Fatal(found, err)
	}
	if more := w.claim(20); count(more, "a") != 1 {
		t.Fatal(ids(more))
	}
}

// aJobsLimitHoldsWithinOneClaim mixes a job with few starts left and one without a limit, in one queue.
func aJobsLimitHoldsWithinOneClaim(s *store) {
	t, w := s.T, newOrder(s)
	other := jobs.Define[string]("other")
	var specs []jobs.Spec
	for range 30 {
		specs = append(specs, job.With("x", jobs.Priority(9)), other.With("y"))
	}
	if _, err := w.Insert(t.Context(), specs, w.now); err != nil {
		t.Fatal(err)
	}
	w.set(jobs.Limit{Target: jobs.Target{Kind: "job", Name: "test"}, Running: 3})
	claimed := w.claim(10)
	n := 0
	for _, task := range claimed {
		if task.Job == "test" {
			n++
		}
	}
	if len(claimed) != 10 || n != 3 || claimed[0].Job != "test" {
		t.Fatal(len(claimed), n)
	}
	if claimed = w.claim(10); len(claimed) != 10 || slices.ContainsFunc(claimed, func(t jobs.Task) bool { return t.Job == "test" }) {
		t.Fatal(len(claimed))
	}
}

// aSuspectThatALimitHoldsHoldsNobodyElse: busy workers stop claiming for the sake of a suspect, but not while its job is at its limit.
func aSuspectThatALimitHoldsHoldsNobodyElse(s *store) {
	w := newOrder(s)
	lost := w.add(jobs.MaxLosses(2))
	dead := s.worker("test", "other")
	s.claim(dead, 1)
	if reaped := must(lose(s.Context(), w.w, must(w.w.Leases(s.Context()))(s), s.now))(s); len(reaped) != 1 || !s.get(lost).Suspect() {
		s.Fatalf("%+v", reaped)
	}
	other := must(s.Insert(s.Context(), []jobs.Spec{jobs.Define[string]("other").With("x"), jobs.Define[string]("other").With("x")}, s.now))(s)
	target := jobs.Target{Kind: jobs.JobTarget, Name: "test"}
	w.set(jobs.Limit{Target: target, Rate: 1, Per: 24 * time.Hour, Burst: 1})
	s.sleep(time.Second)
	turn := func(idle bool) []int64 {
		return ids(w.turn(db.Turn{Look: true, Claim: db.Claim{Free: 1, Idle: idle, Lease: lease}}).Claimed)
	}
	w.add(jobs.Priority(9))
	s.wantIDs(turn(true), []int64{lost}) // the one start there is
	if reaped := must(lose(s.Context(), dead, must(dead.Leases(s.Context()))(s), s.now))(s); len(reaped) != 1 {
		s.Fatalf("%+v", reaped)
	}
	s.sleep(time.Hour)
	s.wantIDs(turn(false), []int64{other[0].ID})
	must(s.RemoveLimit(s.Context(), target, s.now))(s)
	s.wantIDs(turn(false), nil) // now it does
	s.wantIDs(turn(true), []int64{lost})
}

func ratesHoldAndTellWhenTheNextMayStart(s *store) {
	t, w := s.T, newOrder(s)
	for range 100 {
		w.add()
	}
	l := jobs.Limit{Target: jobs.Target{Kind: "queue", Name: "default"}, Rate: 5, Per: time.Second, Burst: 1}
	w.set(l)
	began := w.now
	var starts []time.Time
	for w.now.Sub(began) < 10*time.Second {
		w.set(l) // gives nothing away
		done := w.turn(db.Turn{Look: true, Claim: db.Claim{Free: 10, Lease: time.Minute}})
		for range done.Claimed {
			starts = append(starts, w.now)
		}
		if done.NextStart.IsZero() || !done.NextStart.After(w.now) {
			t.Fatal("nothing tells when the next may start", done.NextStart)
		}
		w.now = done.NextStart
	}
	if len(starts) != 50 {
		t.Fatal(len(starts), "starts in ten seconds")
	}
	for i := range starts[6:] {
		if starts[i+6].Sub(starts[i]) < time.Second {
			t.Fatal("seven starts within a second")
		}
	}
	for len(w.claim(10)) > 0 {
		w.now = w.now.Add(time.Minute)
	}
}

func aLanesRate(s *store) {
	t, w := s.T, newOrder(s)
	w.set(jobs.Limit{Target: jobs.Target{Kind: "lane", Name: "l"}, Rate: 1, Per: time.Minute, Burst: 1})
	a, b := w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	c := w.add(jobs.Lane("m"))
	task := w.claim(10)
	if !slices.Equal(ids(task), []int64{a, c}) {
		t.Fatal(ids(task))
	}
	w.finish(task[0], nil)
	w.is(b, jobs.Blocked)
	done := w.turn(db.Turn{Look: true, Claim: db.Claim{Free: 10, Lease: time.Minute}})
	if len(done.Claimed) != 0 || !done.NextDue.Equal(w.now.Add(time.Minute)) {
		t.Fatal(ids(done.Claimed), done.NextDue)
	}
	w.now = done.NextDue
	if task := w.claim(10); !slices.Equal(ids(task), []int64{b}) {
		t.Fatal(ids(task))
	} else if done := w.finish(task[0], errBad); done.Change.State != jobs.Retrying {
		t.Fatal(done)
	}
	d := w.add(jobs.Lane("l"))
	w.now = w.now.Add(time.Second + 200*time.Millisecond) // the retry is due, the rate is not
	if task := w.claim(10); len(task) != 0 {
		t.Fatal(ids(task))
	}
	w.is(b, jobs.Retrying)
	if found, err := w.RemoveLimit(t.Context(), jobs.Target{Kind: "lane", Name: "l"}, w.now); !found || err != nil {
		t.Fatal(found, err)
	}
	w.now = w.now.Add(time.Minute)
	task = w.claim(10)
	if !slices.Equal(ids(task), []int64{b}) {
		t.Fatal(ids(task))
	}
	w.finish(task[0], nil)
	w.is(d, jobs.Pending)
}

func ageing(s *store) {
	t, w := s.T, newOrder(s)
	low, lower := w.add(jobs.Priority(1)), w.add(jobs.Priority(0))
	w.now = w.now.Add(time.Minute)
	for range 10 {
		w.add(jobs.Priority(9))
	}
	claim := func(maxWait time.Duration) []int64 {
		return ids(w.turn(db.Turn{Look: true, Claim: db.Claim{Free: 1, Lease: time.Minute, MaxWait: maxWait}}).Claimed)
	}
	if got := claim(0); got[0] <= lower {
		t.Fatal(got)
	}
	if got := claim(time.Hour); got[0] <= lower {
		t.Fatal(got)
	}
	w.now = w.now.Add(time.Second)
	if got := claim(time.Minute); got[0] != low {
		t.Fatal(got)
	}
	if got := claim(time.Minute); got[0] != lower {
		t.Fatal(got)
	}
	if got := claim(time.Minute); got[0] <= lower {
		t.Fatal(got)
	}
}

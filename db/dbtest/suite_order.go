package dbtest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The group orders tests the rules by which the next task is chosen:
// dependencies, lanes, limits and age.
var orders = group{
	"a replaced task waits, blocks and is blocked by its new options": replaceTask,
	"a task starts when all its dependencies have completed":          afterStartsWhenAllHaveCompleted,
	"a task can end although a dependent no longer waits":             endsDoNotNeedDependentsThatWait,
	"a failure cancels a chain of dependents in one transaction":      failureCancelsDownAChainInOneTransaction,
	"a dependency that has ended already counts":                      aFinishedDependencyCounts,
	"every kind of end releases dependents and lanes":                 everyEndReleases,
	"retry with dependents":                                           retryWithDependents,
	"many dependencies and many dependents":                           manyDependenciesAndDependents,
	"tasks of a lane run one at a time, in order":                     aLaneRunsOneAtATimeInOrder,
	"a blocked task does not hold its lane":                           aTaskThatWaitsDoesNotHoldItsLane,
	"a lane with a limit runs a few tasks at a time":                  aLaneWithALimitRunsAFewAtATime,
	"a lane may have a rate and a maximum of running tasks":           aLaneMayHaveARateAndARunningLimit,
	"a slot of a lane has one holder":                                 aSlotOfALaneHasOneHolder,
	"the limit of the database":                                       theLimitOfTheDatabase,
	"running limits":                                                  runningLimits,
	"the limit of a job holds within one claim":                       aJobsLimitHoldsWithinOneClaim,
	"rate limits hold and return the next start":                      rateLimitsReturnTheNextStart,
	"the rate limit of a lane":                                        rateOfALane,
	"a suspect that a limit blocks does not block other tasks":        aLimitedSuspectBlocksNoOtherTask,
}

// orderStore is a store with one worker that runs two jobs.
type orderStore struct {
	*store
	w *db.Worker
}

func newOrderStore(s *store) *orderStore { return &orderStore{s, s.worker("test", "other")} }

var job = jobs.Define[string]("test", jobs.MaxAttempts(3), jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Second}))

func (w *orderStore) add(options ...jobs.Option) int64 {
	w.Helper()
	id, err := w.tryAdd(options...)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *orderStore) tryAdd(options ...jobs.Option) (int64, error) {
	w.Helper()
	spec := job.With("x", options...)
	if err := taskspec.Validate(&spec); err != nil {
		w.Fatal(err)
	}
	added, err := w.Insert(w.Context(), []jobs.Spec{spec}, w.now)
	if err != nil {
		return 0, err
	}
	return added[0].ID, nil
}

func (w *orderStore) cycle(c db.Cycle) db.CycleResult {
	w.Helper()
	c.Now = w.now
	return must(w.w.Cycle(w.Context(), c))(w)
}

// claim makes due tasks pending and claims at most free tasks.
func (w *orderStore) claim(free int) []jobs.Task { w.Helper(); return w.store.claim(w.w, free) }

func (w *orderStore) finish(task jobs.Task, err error) db.Finished {
	w.Helper()
	return w.store.finish(w.w, task, taskspec.OutcomeOf(nil, err))
}

func (w *orderStore) wantState(id int64, state jobs.State) jobs.Task {
	w.Helper()
	task := w.get(id)
	if task.State != state {
		w.Fatalf("task %d: got state %s (%s), want %s", id, task.State, task.Error, state)
	}
	return task
}

func (w *orderStore) setLimit(l db.Limit) {
	w.Helper()
	if err := cmp.Or(db.ValidateLimit(l), w.SetLimit(w.Context(), l, w.now)); err != nil {
		w.Fatal(err)
	}
}

var errBad = errors.New("bad")

func replaceTask(s *store) {
	w := newOrderStore(s)
	a, b := w.add(), w.add()
	id := w.add(jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}), jobs.Lane("l"))
	next := w.add(jobs.Lane("l"))
	w.wantState(next, jobs.Blocked)
	same := func(options ...jobs.Option) {
		s.Helper()
		if got := w.add(append(options, jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}))...); got != id {
			s.Fatalf("got task %d, want %d", got, id)
		}
	}
	same(jobs.Lane("l"), jobs.Priority(1)) // a replaced task with the same lane keeps the lane
	w.wantState(id, jobs.Pending)
	same(jobs.DependsOn(a)) // the new options have no lane, so the task gives up its lane
	w.wantState(id, jobs.Blocked)
	w.wantState(next, jobs.Pending)
	same(jobs.Lane("l"), jobs.DependsOnAny(b))
	if task := w.wantState(id, jobs.Blocked); len(task.DependsOn) != 0 || !slices.Equal(task.DependsOnAny, []int64{b}) || task.Lane != "l" {
		s.Fatalf(`got after %v, after any %v, lane %q; want none, %v, "l"`, task.DependsOn, task.DependsOnAny, task.Lane,
			[]int64{b})
	}

	follower := w.add(jobs.DependsOn(id))
	for _, newer := range []int64{follower, id} {
		before := w.get(id)
		key := jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true})
		if _, err := w.tryAdd(key, jobs.DependsOn(newer)); !errors.Is(err, jobs.ErrConflict) ||
			!equal(before, w.get(id)) {
			s.Fatalf("got error %v, before %+v; want error %v, %+v", err, before, jobs.ErrConflict, w.get(id))
		}
	}

	same(jobs.In(time.Hour), jobs.Lane("l"))
	w.wantState(id, jobs.Scheduled)
	same(jobs.Lane("l"))
	w.wantState(id, jobs.Blocked)
	if _, err := w.Apply(w.Context(), []int64{a}, db.Cancel("x", false, w.now)); err != nil {
		s.Fatal(err)
	}

	same(jobs.DependsOn(a))
	s.wantTask(id, jobs.Cancelled, jobs.ReasonDependency)
	s.wantTask(follower, jobs.Cancelled, jobs.ReasonDependency)
}

// stateOf returns the state of a task, or its last state before it was deleted.
func stateOf(tasks, before map[int64]jobs.Task, id int64) jobs.State {
	if task, ok := tasks[id]; ok {
		return task.State
	}
	if task, ok := before[id]; ok {
		return task.State
	}
	return jobs.Completed // an earlier step deleted this finished task, and no task was waiting for it at that time
}

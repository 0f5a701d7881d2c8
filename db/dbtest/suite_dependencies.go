package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// endsDoNotNeedDependentsThatWait checks the ends of tasks whose dependents no
// longer wait, because plain SQL has made these dependents pending. The ends
// must succeed all the same.
func endsDoNotNeedDependentsThatWait(s *store) {
	t, w := s.T, newOrderStore(s)
	completes, fails := w.add(), w.add(jobs.MaxAttempts(1))
	freed, spared := w.add(jobs.DependsOn(completes)), w.add(jobs.DependsOn(fails))
	s.exec(`UPDATE tasks SET state = 'pending', waits = NULL, generation_id = generation_id + 1 WHERE waits = 1`)
	claimed := w.claim(10)
	if want := []int64{completes, fails, freed, spared}; !slices.Equal(ids(claimed), want) {
		t.Fatalf("got %v, want %v", ids(claimed), want)
	}

	for i, err := range []error{nil, errBad, nil, nil} {
		w.finish(claimed[i], err)
	}

	w.wantState(completes, jobs.Completed)
	w.wantState(fails, jobs.Failed)
	w.wantState(freed, jobs.Completed)
	w.wantState(spared, jobs.Completed)
}

func afterStartsWhenAllHaveCompleted(s *store) {
	t, w := s.T, newOrderStore(s)
	a, b := w.add(), w.add()
	c := w.add(jobs.DependsOn(a), jobs.DependsOnAny(b, a))
	if task := w.wantState(c, jobs.Blocked); !slices.Equal(task.DependsOn, []int64{a}) || !slices.Equal(task.DependsOnAny, []int64{b}) ||
		!task.Depends {
		t.Fatalf("got after %+v, after any %+v, depends %v; want %+v, %+v, true", task.DependsOn, task.DependsOnAny, task.Depends,
			[]int64{a}, []int64{b})
	}

	claimed := w.claim(10)
	if !slices.Equal(ids(claimed), []int64{a, b}) {
		t.Fatalf("got %+v, want %+v", ids(claimed), []int64{a, b})
	}

	w.finish(claimed[0], nil)
	if task := w.wantState(c, jobs.Blocked); len(task.DependsOn) != 0 || !slices.Equal(task.DependsOnAny, []int64{b}) {
		t.Fatalf("got after %v, after any %v; want none, %v", task.DependsOn, task.DependsOnAny, []int64{b})
	}

	w.finish(claimed[1], jobs.Cancel(errBad))
	w.wantState(c, jobs.Pending)
	if claimed := w.claim(10); len(claimed) != 1 || !claimed[0].Depends || claimed[0].Waits {
		t.Fatalf("got claims %+v, want one task that depends on others and does not wait", claimed)
	}
}

func failureCancelsDownAChainInOneTransaction(s *store) {
	t, w := s.T, newOrderStore(s)
	a := w.add(jobs.MaxAttempts(1))
	b := w.add(jobs.DependsOn(a))
	c := w.add(jobs.DependsOn(b), jobs.Lane("l"))
	d := w.add(jobs.DependsOnAny(c))
	w.finish(w.claim(1)[0], errBad)
	if task := w.wantState(b, jobs.Cancelled); task.Reason != jobs.ReasonDependency ||
		task.Error != fmt.Sprintf("task %d failed", a) || task.FinishedAt.IsZero() {
		t.Fatalf("got reason %v, error %q, finished at %v; want %v, %q, a time", task.Reason, task.Error, task.FinishedAt,
			jobs.ReasonDependency, fmt.Sprintf("task %d failed", a))
	}
	if task := w.wantState(c, jobs.Cancelled); task.Error != fmt.Sprintf("task %d cancelled", b) {
		t.Fatalf("got %q, want %q", task.Error, fmt.Sprintf("task %d cancelled", b))
	}

	w.wantState(d, jobs.Pending)
	stats, err := w.Queues(t.Context(), w.now.Add(-time.Hour), w.now)
	if err != nil || stats["default"].Ended[jobs.Cancelled] != 2 || stats["default"].Ended[jobs.Failed] != 1 {
		t.Fatalf("queue default: got %+v and error %v, want 2 cancelled tasks and 1 failed", stats["default"], err)
	}
}

func aFinishedDependencyCounts(s *store) {
	t, w := s.T, newOrderStore(s)
	good, bad := w.add(), w.add(jobs.MaxAttempts(1))
	claimed := w.claim(2)
	w.finish(claimed[0], nil)
	w.finish(claimed[1], errBad)
	w.wantState(w.add(jobs.DependsOn(good), jobs.DependsOnAny(bad)), jobs.Pending)
	w.wantState(w.add(jobs.DependsOn(good), jobs.In(time.Hour)), jobs.Scheduled)
	late := w.add(jobs.DependsOn(good, bad))
	if task := w.wantState(late, jobs.Cancelled); task.Reason != jobs.ReasonDependency ||
		task.Error != fmt.Sprintf("task %d failed", bad) {
		t.Fatalf("got reason %v, error %q; want %v, %q", task.Reason, task.Error, jobs.ReasonDependency,
			fmt.Sprintf("task %d failed", bad))
	}

	n, _ := w.Count(t.Context(), jobs.Filter{})
	_, err := w.tryAdd(jobs.DependsOn(good, 999))
	if !errors.Is(err, jobs.ErrNotFound) || !strings.Contains(err.Error(), "999") {
		t.Fatalf("got error %v, want %v for task 999", err, jobs.ErrNotFound)
	}
	if after, _ := w.Count(t.Context(), jobs.Filter{}); after != n {
		t.Fatalf("got %d tasks after the failed insert, want %d", after, n)
	}
}

// everyEndReleases ends tasks without Finish, for example by a cancellation.
// Each of these ends must release the dependents, too.
func everyEndReleases(s *store) {
	w := newOrderStore(s)
	ends := map[string]func(w *orderStore, id int64){
		"cancel while it waits": func(w *orderStore, id int64) {
			if _, err := w.Apply(w.Context(), []int64{id}, db.Cancel("by me", false, w.now)); err != nil {
				w.Fatal(err)
			}
		},
		"expiry": func(w *orderStore, id int64) {
			w.now = w.now.Add(2 * time.Hour)
			w.cycle(db.Cycle{Look: true})
		},
		"cancel while it runs": func(w *orderStore, id int64) {
			task := w.claim(1)[0]
			if _, err := w.Apply(w.Context(), []int64{id}, db.Cancel("by me", false, w.now)); err != nil {
				w.Fatal(err)
			}
			w.finish(task, errBad)
		},
		"loss": func(w *orderStore, id int64) {
			w.claim(1)
			leases, err := w.worker("x").Leases(w.Context())
			if err != nil || len(leases) != 1 {
				w.Fatalf("got %d leases and error %v, want 1 lease", len(leases), err)
			}
			if n, err := revokeAndReap(w.Context(), w.worker("x"), leases, w.now); len(n) != 1 || err != nil {
				w.Fatalf("got %d reaped tasks and error %v, want 1 task", len(n), err)
			}
		},
		"release of one to be cancelled": func(w *orderStore, id int64) {
			task := w.claim(1)[0]
			if _, err := w.Apply(w.Context(), []int64{id}, db.Cancel("by me", false, w.now)); err != nil {
				w.Fatal(err)
			}
			if err := w.w.Release(w.Context(), claimsOf(task), w.now); err != nil {
				w.Fatal(err)
			}
		},
	}
	for name, end := range ends {
		first := w.add(jobs.Lane("l"), jobs.ExpiresIn(time.Hour), jobs.MaxLosses(0))
		next, after, any := w.add(jobs.Lane("l")), w.add(jobs.DependsOn(first)), w.add(jobs.DependsOnAny(first))
		w.wantState(next, jobs.Blocked)
		end(w, first)
		if state := w.get(first).State; !state.Finished() {
			s.Fatalf("%s: got state %s, want a finished one", name, state)
		}

		w.wantState(next, jobs.Pending)
		w.wantState(after, jobs.Cancelled)
		w.wantState(any, jobs.Pending)
		state := w.get(first).State
		want := jobs.ActionResult{ID: first, State: state, NeededBy: any}
		if moved, err := w.Apply(w.Context(), []int64{first}, db.Delete()); err != nil || moved[0] != want {
			s.Fatalf("%s: delete: got results %v and error %v, want that task %d needs it", name, moved, err, any)
		}

		for _, task := range w.claim(10) {
			w.finish(task, nil)
		}

		if moved, err := w.Apply(w.Context(), []int64{first}, db.Delete()); err != nil || !moved[0].Done {
			s.Fatalf("%s: delete: got results %v and error %v, want the task deleted", name, moved, err)
		}
	}
}

func retryWithDependents(s *store) {
	t, w := s.T, newOrderStore(s)
	a, other := w.add(jobs.MaxAttempts(1)), w.add(jobs.MaxAttempts(1))
	b := w.add(jobs.DependsOn(a))
	c := w.add(jobs.DependsOn(b))
	both := w.add(jobs.DependsOn(a, other))
	claimed := w.claim(2)
	w.finish(claimed[0], errBad)
	w.finish(claimed[1], errBad)
	w.wantState(c, jobs.Cancelled)
	moved, err := w.Apply(t.Context(), []int64{a}, db.Retry(w.now, w.now, true))
	if err != nil || len(moved) != 3 {
		t.Fatalf("got %d retried tasks and error %v, want 3 tasks", len(moved), err)
	}

	w.wantState(a, jobs.Pending)
	w.wantState(b, jobs.Blocked)
	w.wantState(c, jobs.Blocked)
	w.wantState(both, jobs.Cancelled) // its other dependency did not complete
	if _, err := w.Apply(t.Context(), []int64{other}, db.Retry(w.now, w.now, true)); err != nil {
		t.Fatal(err)
	}
	if task := w.wantState(both, jobs.Blocked); !slices.Equal(task.DependsOn, []int64{a, other}) {
		t.Fatalf("got %+v, want %+v", task.DependsOn, []int64{a, other})
	}

	for range 4 {
		for _, task := range w.claim(10) {
			w.finish(task, nil)
		}
	}

	for _, id := range []int64{a, b, c, both} {
		w.wantState(id, jobs.Completed)
	}

	// A retried task does not wait for dependencies that have finished.
	if _, err := w.Apply(t.Context(), []int64{b}, db.Retry(w.now, w.now, false)); err != nil {
		t.Fatal(err)
	}

	w.wantState(b, jobs.Pending)
	w.finish(w.claim(1)[0], nil)

	// Results of deleted tasks are missing.
	for i, gone := range []int64{0, a} {
		if i > 0 {
			must(w.Apply(t.Context(), []int64{gone}, db.Delete()))(s)
		}
		moved := must(w.Apply(t.Context(), []int64{both}, db.Retry(w.now, w.now, false)))(s)
		if want := (jobs.ActionResult{ID: both, State: jobs.Pending, Done: true, Without: gone}); moved[0] != want {
			t.Fatalf("got %+v, want %+v", moved[0], want)
		}
		w.finish(w.claim(1)[0], nil)
	}
}

func manyDependenciesAndDependents(s *store) {
	t, w, n := s.T, newOrderStore(s), testkit.Size(1000, 10_000)
	if raceDetector {
		n /= 20 // the race detector makes SQLite about 20 times slower
	}

	specs := make([]jobs.Spec, n, n+1)
	for i := range specs {
		specs[i] = job.With("x")
	}

	last := job.With("last")
	for i := range n {
		last.DependsOnEarlier = append(last.DependsOnEarlier, i)
	}

	added, err := w.Insert(t.Context(), append(specs, last), w.now)
	if err != nil {
		t.Fatal(err)
	}

	end := added[n].ID
	var slowest time.Duration
	for done := 0; done < n; done += 100 {
		w.wantState(end, jobs.Blocked)
		claimed := w.claim(100)
		finish := make([]db.Finish, len(claimed))
		for i, task := range claimed {
			finish[i] = db.Finish{Task: task, Outcome: taskspec.Outcome{Started: w.now, Finished: w.now}}
		}

		began := time.Now()
		w.cycle(db.Cycle{Finish: finish})
		slowest = max(slowest, time.Since(began))
	}

	t.Logf("fan-in of %d: finishing 100 of them took %v at most", n, slowest)
	for i := range specs {
		specs[i].DependsOn = []int64{end}
	}

	if _, err := w.Insert(t.Context(), specs, w.now); err != nil {
		t.Fatal(err)
	}

	task := w.claim(10)
	if len(task) != 1 || task[0].ID != end {
		t.Fatalf("got claims %v, want only %d", ids(task), end)
	}

	began := time.Now()
	w.finish(task[0], nil)
	t.Logf("fan-out of %d: finishing the one took %v", n, time.Since(began))
	pending, err := w.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}})
	if err != nil || pending != n {
		t.Fatalf("got %d pending tasks and error %v, want %d", pending, err, n)
	}
}

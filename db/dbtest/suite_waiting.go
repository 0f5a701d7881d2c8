package dbtest

import (
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// The group waits tests the changes of waiting tasks by users: edit, top, hold and release.
var waits = group{
	"hold in each state":                         holdInEachState,
	"a held task does not start":                 heldTasksDoNotStart,
	"release decides as an enqueue does":         releaseDecidesAnew,
	"dependencies of a held task end":            dependenciesOfHeldTasksEnd,
	"a hold ends with its task":                  holdsEndWithTheirTasks,
	"a held task gives up its lane":              heldTasksGiveUpTheirLanes,
	"a hold outlives its state by plain SQL":     holdsOutliveTheirStates,
	"enqueue with a hold":                        enqueueHeld,
	"edit in each state":                         editInEachState,
	"an edit of the lane or due time moves":      editMovesTasks,
	"an edit changes nothing after an error":     refusedEditsChangeNothing,
	"top":                                        topGoesFirst,
	"top passes the tasks that wait for a lane":  topOfALane,
	"the last changes are kept":                  lastChangesAreKept,
	"a task that plain SQL inserted with others": changesOfPlainTasks,
	"an edit and a claim at the same time":       editsRaceWithClaims,
}

// specOf returns the settings of a task.
func specOf(t jobs.Task) jobs.Spec {
	return jobs.Spec{Job: t.Job, Args: t.Args, Label: t.Label, Queue: t.Queue, Priority: t.Priority, Lane: t.Lane, UniqueKey: t.UniqueKey,
		RunAt: t.RunAt, MaxAttempts: t.MaxAttempts, MaxLosses: t.MaxLosses, Options: t.Options}
}

// edit changes the settings of a task.
func (s *store) edit(id int64, options ...jobs.Option) db.ActionResult {
	s.Helper()
	return must(s.Edit(s.Context(), id, "ann", s.now, func(t jobs.Task) (db.Edit, error) {
		e := db.Edit{Spec: specOf(t)}
		for _, option := range options {
			option(&e.Spec)
		}
		e.Due = e.Spec.In != 0 || !e.Spec.RunAt.Equal(t.RunAt)
		return e, nil
	}))(s)
}

func (s *store) hold(ids ...int64) []db.ActionResult {
	s.Helper()
	return must(s.Hold(s.Context(), ids, "ann", "audit", s.now))(s)
}

func (s *store) release(ids ...int64) []db.ActionResult {
	s.Helper()
	return must(s.Release(s.Context(), ids, "bob", s.now))(s)
}

// wantNoHolds checks that no row of the table holds is left.
func (s *store) wantNoHolds() {
	s.Helper()
	if n := s.number(`SELECT count(*) FROM holds`); n != 0 {
		s.Errorf("got %d rows in holds, want none", n)
	}
}

func holdInEachState(s *store) {
	for _, state := range jobs.States() {
		id := s.inState(state)
		before := s.get(id)
		got, want := s.hold(id)[0], db.ActionResult{ID: id, State: state}
		waits := !state.Finished() && state != jobs.Running
		if waits {
			want = db.ActionResult{ID: id, State: jobs.Blocked, Done: true}
		}
		after := s.get(id)
		if got != want || after.State != want.State || after.HeldSince.IsZero() == waits || after.Attempt != before.Attempt ||
			!after.RunAt.Equal(before.RunAt) {
			s.Errorf("hold in state %s: got %+v, task %+v; want %+v", state, got, after, want)
		}
		if again := s.hold(id)[0]; again != want {
			s.Errorf("second hold in state %s: got %+v, want %+v", state, again, want)
		}
		s.sleep(time.Minute)
		got = s.release(id)[0]
		if got.Done != waits || s.get(id).State == jobs.Blocked && state != jobs.Blocked {
			s.Errorf("release in state %s: got %+v, task %+v", state, got, s.get(id))
		}
		if !waits && !equal(before, s.get(id)) {
			s.Errorf("hold and release in state %s: got task %+v, want %+v as before", state, s.get(id), before)
		}
		s.exec(`DELETE FROM tasks WHERE finished_at IS NULL`)
	}
	s.wantNoHolds()
}

func heldTasksDoNotStart(s *store) {
	w := newOrderStore(s)
	now, later, free := w.add(), w.add(jobs.In(time.Minute)), w.add()
	w.hold(now, later)
	w.sleep(time.Hour)
	if got := ids(w.claim(10)); !slices.Equal(got, []int64{free}) {
		s.Fatalf("got claims %v, want %v", got, []int64{free})
	}
	if got := ids(must(s.List(s.Context(), jobs.Filter{Held: true}, db.Page{Oldest: true}))(s)); !slices.Equal(got, []int64{now, later}) {
		s.Errorf("held tasks: got %v, want %v", got, []int64{now, later})
	}
	held := w.get(now)
	if held.HeldBy != "ann" || held.HeldReason != "audit" || !held.HeldSince.Equal(start) {
		s.Errorf("got hold %q, %q, %v; want ann, audit, %v", held.HeldBy, held.HeldReason, held.HeldSince, start)
	}
	w.release(now, later)
	if got := ids(w.claim(10)); !slices.Equal(got, []int64{now, later}) {
		s.Errorf("after release: got claims %v, want %v", got, []int64{now, later})
	}
}

func releaseDecidesAnew(s *store) {
	w := newOrderStore(s)
	first := w.add(jobs.Lane("l"))
	for name, c := range map[string]struct {
		options []jobs.Option
		want    jobs.State
	}{
		"now":          {nil, jobs.Pending},
		"later":        {[]jobs.Option{jobs.In(time.Hour)}, jobs.Scheduled},
		"lane":         {[]jobs.Option{jobs.Lane("l")}, jobs.Blocked},
		"after":        {[]jobs.Option{jobs.After(first)}, jobs.Blocked},
		"after, later": {[]jobs.Option{jobs.In(time.Hour), jobs.AfterAny(first)}, jobs.Blocked},
	} {
		id := w.add(c.options...)
		was := w.wantState(id, c.want)
		w.hold(id)
		w.wantState(id, jobs.Blocked)
		got := w.release(id)[0]
		now := w.wantState(id, c.want)
		if got != (db.ActionResult{ID: id, State: c.want, Done: true}) || was.Waits != now.Waits || !now.HeldSince.IsZero() {
			s.Errorf("%s: got %+v, waits %v; want state %s, waits %v", name, got, now.Waits, c.want, was.Waits)
		}
	}
}

func dependenciesOfHeldTasksEnd(s *store) {
	w := newOrderStore(s)
	good, bad := w.add(), w.add(jobs.MaxAttempts(1))
	held, broken, waits := w.add(jobs.After(good)), w.add(jobs.After(bad)), w.add(jobs.After(good))
	w.hold(held, broken)
	for _, task := range w.claim(2) {
		var err error
		if task.ID == bad {
			err = errBad
		}
		w.finish(task, err)
	}
	w.wantState(waits, jobs.Pending)
	if got := w.wantState(held, jobs.Blocked); len(got.After) != 0 || got.HeldSince.IsZero() {
		s.Errorf("got open dependencies %v, held since %v; want none and a time", got.After, got.HeldSince)
	}
	if got := w.wantState(broken, jobs.Cancelled); got.Reason != jobs.ReasonDependency {
		s.Errorf("got reason %q, want %q", got.Reason, jobs.ReasonDependency)
	}
	w.release(held)
	w.wantState(held, jobs.Pending)
	s.wantNoHolds()
}

func holdsEndWithTheirTasks(s *store) {
	w := newOrderStore(s)
	cancelled, expires := w.add(), w.add(jobs.ExpiresIn(time.Minute))
	w.hold(cancelled, expires)
	must(s.Cancel(s.Context(), []int64{cancelled}, "by ann", false, s.now))(s)
	w.sleep(time.Hour)
	w.claim(1)
	w.wantState(cancelled, jobs.Cancelled)
	if got := w.wantState(expires, jobs.Cancelled); got.Reason != jobs.ReasonExpired {
		s.Errorf("got reason %q, want %q", got.Reason, jobs.ReasonExpired)
	}
	s.wantNoHolds()
	if m := must(s.Retry(s.Context(), []int64{cancelled}, s.now, s.now))(s)[0]; m.State != jobs.Pending {
		s.Errorf("retry after a hold: got %+v, want state pending", m)
	}
	must(s.Delete(s.Context(), []int64{expires}))(s)
	if got := must(s.TaskChanges(s.Context(), expires))(s); len(got) != 0 {
		s.Errorf("changes of a deleted task: got %+v, want none", got)
	}
}

func heldTasksGiveUpTheirLanes(s *store) {
	w := newOrderStore(s)
	first, second, third := w.add(jobs.Lane("l")), w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	w.hold(first, second)
	w.wantState(third, jobs.Pending)
	w.release(second, first)
	w.wantState(second, jobs.Blocked)
	for _, want := range []int64{third, first, second} {
		task := w.claim(10)
		if !slices.Equal(ids(task), []int64{want}) {
			s.Fatalf("got claims %v, want %v", ids(task), want)
		}
		w.finish(task[0], nil)
	}
	// A retrying task that gets a hold gives up its lane, but keeps its attempts.
	retrying, next := w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	w.finish(w.claim(1)[0], errBad)
	w.wantState(retrying, jobs.Retrying)
	w.hold(retrying)
	w.wantState(next, jobs.Pending)
	w.release(retrying)
	if got := w.wantState(retrying, jobs.Scheduled); got.Attempt != 1 {
		s.Errorf("got %d attempts, want 1", got.Attempt)
	}
}

// holdsOutliveTheirStates makes a held task pending with plain SQL. The row of its hold stays, but has no effect. If the task is held
// again, it gets a new hold.
func holdsOutliveTheirStates(s *store) {
	w := newOrderStore(s)
	id := w.add()
	w.hold(id)
	s.exec(`UPDATE tasks SET state = 'pending', waits = NULL, generation_id = generation_id + 1 WHERE id = ?`, id)
	if got := w.get(id); !got.HeldSince.IsZero() {
		s.Errorf("got held since %v, want no hold", got.HeldSince)
	}
	s.sleep(time.Minute)
	w.hold(id)
	if got := w.wantState(id, jobs.Blocked); !got.HeldSince.Equal(s.now) {
		s.Errorf("got held since %v, want %v", got.HeldSince, s.now)
	}
	w.release(id)
	w.wantState(id, jobs.Pending)
	s.wantNoHolds()
}

func enqueueHeld(s *store) {
	w := newOrderStore(s)
	id := w.add(jobs.Hold(), jobs.In(time.Minute))
	if got := w.wantState(id, jobs.Blocked); got.HeldSince.IsZero() {
		s.Errorf("got no hold")
	}
	done := w.add()
	w.finish(w.claim(1)[0], jobs.Cancel(errBad))
	w.wantState(w.add(jobs.Hold(), jobs.After(done)), jobs.Cancelled) // the dependency did not complete, so the task is cancelled at once
	w.release(id)
	w.wantState(id, jobs.Scheduled)
	unique := w.add(jobs.UniqueReplace("key"))
	w.add(jobs.UniqueReplace("key"), jobs.Hold())
	if got := w.wantState(unique, jobs.Blocked); got.HeldSince.IsZero() {
		s.Errorf("a task replaced by a held one: got no hold")
	}
	w.add(jobs.UniqueReplace("key"), jobs.Priority(7))
	if got := w.wantState(unique, jobs.Blocked); got.HeldSince.IsZero() || got.Priority != 7 {
		s.Errorf("a replaced held task: got held since %v, priority %d; want a time, 7", got.HeldSince, got.Priority)
	}
	w.release(unique)
	w.wantState(unique, jobs.Pending)
	s.wantNoHolds()
}

package dbtest

import (
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The group waits tests the changes of waiting tasks by users: edit, first,
// pause and resume.
var waits = group{
	"pause in each state":                         pauseInEachState,
	"a paused task does not start":                pausedTasksDoNotStart,
	"resume decides as an enqueue does":           resumeDecidesAnew,
	"dependencies of a paused task end":           dependenciesOfPausedTasksEnd,
	"a pause ends with its task":                  pausesEndWithTheirTasks,
	"a paused task gives up its lane":             pausedTasksGiveUpTheirLanes,
	"a pause outlives its state by plain SQL":     pausesOutliveTheirStates,
	"enqueue paused":                              enqueuePaused,
	"edit in each state":                          editInEachState,
	"an edit of the lane or due time moves":       editMovesTasks,
	"an edit changes nothing after an error":      refusedEditsChangeNothing,
	"first":                                       firstGoesFirst,
	"first passes the tasks that wait for a lane": firstOfALane,
	"the last changes are kept":                   lastChangesAreKept,
	"a task that plain SQL inserted with others":  changesOfPlainTasks,
	"an edit and a claim at the same time":        editsRaceWithClaims,
}

// edit changes the settings of a task.
func (s *store) edit(id int64, options ...jobs.Option) db.Edited {
	s.Helper()
	return must(s.tryEdit(id, options...))(s)
}

func (s *store) tryEdit(id int64, options ...jobs.Option) (db.Edited, error) {
	return s.Edit(s.Context(), id, "ann", s.now, options)
}

func (s *store) pauseTasks(ids ...int64) []jobs.ActionResult {
	s.Helper()
	return s.apply(db.PauseTask("ann", "audit", s.now), ids...)
}

func (s *store) resumeTasks(ids ...int64) []jobs.ActionResult {
	s.Helper()
	return s.apply(db.ResumeTask("bob", s.now), ids...)
}

// wantNoTaskPauses checks that no row of the table task_pauses is left.
func (s *store) wantNoTaskPauses() {
	s.Helper()
	if n := s.number(`SELECT count(*) FROM task_pauses`); n != 0 {
		s.Errorf("got %d rows in task_pauses, want none", n)
	}
}

func pauseInEachState(s *store) {
	for _, state := range taskspec.AllStates() {
		id := s.inState(state)
		before := s.get(id)
		got, want := s.pauseTasks(id)[0], jobs.ActionResult{ID: id, State: state}
		waits := !state.Finished() && state != jobs.Running
		if waits {
			want = jobs.ActionResult{ID: id, State: jobs.Blocked, Done: true}
		}

		after := s.get(id)
		if got != want || after.State != want.State || after.PausedAt.IsZero() == waits || after.Attempt != before.Attempt ||
			!after.RunAt.Equal(before.RunAt) {
			s.Errorf("pause in state %s: got %+v, task %+v; want %+v", state, got, after, want)
		}
		if again := s.pauseTasks(id)[0]; again != want {
			s.Errorf("second pause in state %s: got %+v, want %+v", state, again, want)
		}

		s.sleep(time.Minute)
		got = s.resumeTasks(id)[0]
		if got.Done != waits || s.get(id).State == jobs.Blocked && state != jobs.Blocked {
			s.Errorf("resume in state %s: got %+v, task %+v", state, got, s.get(id))
		}
		if !waits && !equal(before, s.get(id)) {
			s.Errorf("pause and resume in state %s: got task %+v, want %+v as before", state, s.get(id), before)
		}

		s.exec(`DELETE FROM tasks WHERE finished_at IS NULL`)
	}
	s.wantNoTaskPauses()
}

func pausedTasksDoNotStart(s *store) {
	w := newOrderStore(s)
	now, later, free := w.add(), w.add(jobs.In(time.Minute)), w.add()
	w.pauseTasks(now, later)
	w.sleep(time.Hour)
	if got := ids(w.claim(10)); !slices.Equal(got, []int64{free}) {
		s.Fatalf("got claims %v, want %v", got, []int64{free})
	}
	if got := ids(must(s.List(s.Context(), jobs.Filter{Paused: true, OldestFirst: true}))(s)); !slices.Equal(got, []int64{now, later}) {
		s.Errorf("paused tasks: got %v, want %v", got, []int64{now, later})
	}

	paused := w.get(now)
	if paused.PausedBy != "ann" || paused.PausedReason != "audit" || !paused.PausedAt.Equal(start) {
		s.Errorf("got pause %q, %q, %v; want ann, audit, %v", paused.PausedBy, paused.PausedReason, paused.PausedAt, start)
	}

	w.resumeTasks(now, later)
	if got := ids(w.claim(10)); !slices.Equal(got, []int64{now, later}) {
		s.Errorf("after resume: got claims %v, want %v", got, []int64{now, later})
	}
}

func resumeDecidesAnew(s *store) {
	w := newOrderStore(s)
	first := w.add(jobs.Lane("l"))
	for name, c := range map[string]struct {
		options []jobs.Option
		want    jobs.State
	}{
		"now":          {nil, jobs.Pending},
		"later":        {[]jobs.Option{jobs.In(time.Hour)}, jobs.Scheduled},
		"lane":         {[]jobs.Option{jobs.Lane("l")}, jobs.Blocked},
		"after":        {[]jobs.Option{jobs.DependsOn(first)}, jobs.Blocked},
		"after, later": {[]jobs.Option{jobs.In(time.Hour), jobs.DependsOnAny(first)}, jobs.Blocked},
	} {
		id := w.add(c.options...)
		was := w.wantState(id, c.want)
		w.pauseTasks(id)
		w.wantState(id, jobs.Blocked)
		got := w.resumeTasks(id)[0]
		now := w.wantState(id, c.want)
		if got != (jobs.ActionResult{ID: id, State: c.want, Done: true}) || was.Waits != now.Waits || !now.PausedAt.IsZero() {
			s.Errorf("%s: got %+v, waits %v; want state %s, waits %v", name, got, now.Waits, c.want, was.Waits)
		}
	}
}

func dependenciesOfPausedTasksEnd(s *store) {
	w := newOrderStore(s)
	good, bad := w.add(), w.add(jobs.MaxAttempts(1))
	paused, broken, waits := w.add(jobs.DependsOn(good)), w.add(jobs.DependsOn(bad)), w.add(jobs.DependsOn(good))
	w.pauseTasks(paused, broken)
	for _, task := range w.claim(2) {
		var err error
		if task.ID == bad {
			err = errBad
		}
		w.finish(task, err)
	}

	w.wantState(waits, jobs.Pending)
	if got := w.wantState(paused, jobs.Blocked); len(got.DependsOn) != 0 || got.PausedAt.IsZero() {
		s.Errorf("got open dependencies %v, paused since %v; want none and a time", got.DependsOn, got.PausedAt)
	}
	if got := w.wantState(broken, jobs.Cancelled); got.Reason != jobs.ReasonDependency {
		s.Errorf("got reason %q, want %q", got.Reason, jobs.ReasonDependency)
	}

	w.resumeTasks(paused)
	w.wantState(paused, jobs.Pending)
	s.wantNoTaskPauses()
}

func pausesEndWithTheirTasks(s *store) {
	w := newOrderStore(s)
	cancelled, expires := w.add(), w.add(jobs.ExpiresIn(time.Minute))
	w.pauseTasks(cancelled, expires)
	s.apply(db.Cancel("by ann", false, s.now), cancelled)
	w.sleep(time.Hour)
	w.claim(1)
	w.wantState(cancelled, jobs.Cancelled)
	if got := w.wantState(expires, jobs.Cancelled); got.Reason != jobs.ReasonExpired {
		s.Errorf("got reason %q, want %q", got.Reason, jobs.ReasonExpired)
	}

	s.wantNoTaskPauses()
	if m := s.apply(db.Retry(s.now, s.now, false), cancelled)[0]; m.State != jobs.Pending {
		s.Errorf("retry after a pause: got %+v, want state pending", m)
	}

	s.apply(db.Delete(), expires)
	if got := must(s.TaskChanges(s.Context(), expires))(s); len(got) != 0 {
		s.Errorf("changes of a deleted task: got %+v, want none", got)
	}
}

func pausedTasksGiveUpTheirLanes(s *store) {
	w := newOrderStore(s)
	first, second, third := w.add(jobs.Lane("l")), w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	w.pauseTasks(first, second)
	w.wantState(third, jobs.Pending)
	w.resumeTasks(second, first)
	w.wantState(second, jobs.Blocked)
	for _, want := range []int64{third, first, second} {
		task := w.claim(10)
		if !slices.Equal(ids(task), []int64{want}) {
			s.Fatalf("got claims %v, want %v", ids(task), want)
		}
		w.finish(task[0], nil)
	}

	// A retrying task that is paused gives up its lane, but keeps its attempts.
	retrying, next := w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	w.finish(w.claim(1)[0], errBad)
	w.wantState(retrying, jobs.Retrying)
	w.pauseTasks(retrying)
	w.wantState(next, jobs.Pending)
	w.resumeTasks(retrying)
	if got := w.wantState(retrying, jobs.Scheduled); got.Attempt != 1 {
		s.Errorf("got %d attempts, want 1", got.Attempt)
	}
}

// pausesOutliveTheirStates makes a paused task pending with plain SQL. The row
// of its pause stays, but has no effect. If the task is paused again, it gets a
// new row.
func pausesOutliveTheirStates(s *store) {
	w := newOrderStore(s)
	id := w.add()
	w.pauseTasks(id)
	s.exec(`UPDATE tasks SET state = 'pending', waits = NULL, generation_id = generation_id + 1 WHERE id = ?`, id)
	if got := w.get(id); !got.PausedAt.IsZero() {
		s.Errorf("got paused since %v, want none", got.PausedAt)
	}

	s.sleep(time.Minute)
	w.pauseTasks(id)
	if got := w.wantState(id, jobs.Blocked); !got.PausedAt.Equal(s.now) {
		s.Errorf("got paused since %v, want %v", got.PausedAt, s.now)
	}

	w.resumeTasks(id)
	w.wantState(id, jobs.Pending)
	s.wantNoTaskPauses()
}

func enqueuePaused(s *store) {
	w := newOrderStore(s)
	id := w.add(jobs.Paused(), jobs.In(time.Minute))
	if got := w.wantState(id, jobs.Blocked); got.PausedAt.IsZero() {
		s.Errorf("got no pause")
	}

	done := w.add()
	w.finish(w.claim(1)[0], jobs.Cancel(errBad))
	w.wantState(w.add(jobs.Paused(), jobs.DependsOn(done)), jobs.Cancelled) // at once: the dependency did not complete
	w.resumeTasks(id)
	w.wantState(id, jobs.Scheduled)
	unique := w.add(jobs.UniqueWith("key", jobs.UniqueOptions{Replace: true}))
	w.add(jobs.UniqueWith("key", jobs.UniqueOptions{Replace: true}), jobs.Paused())
	if got := w.wantState(unique, jobs.Blocked); got.PausedAt.IsZero() {
		s.Errorf("a task replaced by a paused one: got no pause")
	}

	w.add(jobs.UniqueWith("key", jobs.UniqueOptions{Replace: true}), jobs.Priority(7))
	if got := w.wantState(unique, jobs.Blocked); got.PausedAt.IsZero() || got.Priority != 7 {
		s.Errorf("a replaced paused task: got paused since %v, priority %d; want a time, 7", got.PausedAt, got.Priority)
	}

	w.resumeTasks(unique)
	w.wantState(unique, jobs.Pending)
	s.wantNoTaskPauses()
}

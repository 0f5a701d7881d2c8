package dbtest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func editInEachState(s *store) {
	for _, state := range taskspec.AllStates() {
		if state == jobs.Blocked { // a task is blocked only if it waits for something, such as its resume; editMovesTasks tests such tasks
			continue
		}

		id := s.inState(state, jobs.Unique("key "+string(state)), jobs.ExpiresIn(24*time.Hour))
		before := s.get(id)
		got, err := s.tryEdit(id, jobs.Priority(9), jobs.Label("new"), jobs.Timeout(time.Minute))
		want, after := before, s.get(id)
		if !state.Finished() && state != jobs.Running {
			want.Priority, want.Label, want.Timeout = 9, "new", time.Minute
		}
		if got.State != state || (err == nil) != (want.Priority == 9) || err != nil && !errors.Is(err, jobs.ErrConflict) ||
			!reflect.DeepEqual(after, want) {
			s.Errorf("%s: got %+v, %v, task %+v; want task %+v", state, got, err, after, want)
		}

		got = s.edit(id, jobs.Metadata(map[string]string{"seen": "yes"}))
		want.Metadata = map[string]string{"seen": "yes"}
		if after := s.get(id); got.State != state || !reflect.DeepEqual(after, want) {
			s.Errorf("metadata of a %s task: got %+v, task %+v; want task %+v", state, got, after, want)
		}

		s.exec(`DELETE FROM tasks WHERE finished_at IS NULL`)
	}
	if got, err := s.tryEdit(99); !errors.Is(err, jobs.ErrNotFound) {
		s.Errorf("no such task: got %+v, %v; want %v", got, err, jobs.ErrNotFound)
	}
}

func editMovesTasks(s *store) {
	w := newOrderStore(s)
	a, b := w.add(jobs.Lane("l")), w.add(jobs.Lane("l"))
	w.edit(a, jobs.Lane("")) // task a is pending and no longer has a lane, so b gets the lane
	w.wantState(a, jobs.Pending)
	w.wantState(b, jobs.Pending)
	w.edit(a, jobs.Lane("l"))
	w.wantState(a, jobs.Blocked)
	w.edit(b, jobs.In(time.Hour))
	w.wantState(a, jobs.Pending)
	if got := w.wantState(b, jobs.Scheduled); !got.RunAt.Equal(s.now.Add(time.Hour)) {
		s.Errorf("got run_at %v, want %v", got.RunAt, s.now.Add(time.Hour))
	}

	w.edit(b, jobs.At(s.now))
	w.wantState(b, jobs.Blocked)
	w.edit(b, jobs.Lane("other"))
	w.wantState(b, jobs.Pending)

	// A retrying task keeps its state until its lane or its due time changes.
	w.finish(w.claim(1)[0], errBad)
	w.wantState(a, jobs.Retrying)
	w.edit(a, jobs.Priority(3))
	w.wantState(a, jobs.Retrying)
	w.edit(a, jobs.Lane("third"))
	w.wantState(a, jobs.Scheduled)
	w.edit(a, jobs.At(s.now))
	if got := w.wantState(a, jobs.Pending); got.Attempt != 1 {
		s.Errorf("got %d attempts, want 1", got.Attempt)
	}

	// An edit does not unblock a task that waits for another task or for its
	// resume.
	c := w.add(jobs.DependsOn(a))
	w.pauseTasks(b)
	for _, id := range []int64{b, c} {
		w.edit(id, jobs.Lane("l"), jobs.At(s.now))
		w.wantState(id, jobs.Blocked)
	}
}

func refusedEditsChangeNothing(s *store) {
	w := newOrderStore(s)
	a, b := w.add(jobs.Unique("a")), w.add()
	before := w.get(b)
	if _, err := s.tryEdit(b, jobs.Unique("a"), jobs.Priority(9)); !errors.Is(err, jobs.ErrConflict) {
		s.Errorf("unique key of task %d: got error %v, want %v", a, err, jobs.ErrConflict)
	}
	for _, refused := range []jobs.Option{jobs.DependsOn(a), jobs.Paused(), func(s *jobs.Spec) { s.Job = "other" }} {
		if _, err := s.tryEdit(b, refused); !errors.Is(err, jobs.ErrInvalid) {
			s.Errorf("got error %v, want %v", err, jobs.ErrInvalid)
		}
	}
	if _, err := s.tryEdit(b, func(s *jobs.Spec) { s.Err = errBad }); !errors.Is(err, errBad) {
		s.Errorf("got error %v, want %v", err, errBad)
	}
	if got := w.get(b); !equal(got, before) {
		s.Errorf("got task %+v, want %+v", got, before)
	}
	if got := must(s.TaskChanges(s.Context(), b))(s); len(got) != 0 {
		s.Errorf("got changes %+v, want none", got)
	}
}

func firstGoesFirst(s *store) {
	w := newOrderStore(s)
	a, b, c := w.add(jobs.Priority(8)), w.add(), w.add()
	w.add(jobs.Priority(100), jobs.Queue("y"))
	for _, m := range must(s.PutFirst(s.Context(), []int64{c, b}, "ann", s.now))(s) {
		if !m.Done || m.State != jobs.Pending {
			s.Errorf("got %+v, want a pending task", m)
		}
	}

	for id, want := range map[int64]int{a: 8, b: 9, c: 10} {
		if got := w.get(id).Priority; got != want {
			s.Errorf("task %d: got priority %d, want %d", id, got, want)
		}
	}

	must(s.PutFirst(s.Context(), []int64{c}, "ann", s.now))(s) // task c is already first in its queue, so it keeps its priority
	if got := w.get(c).Priority; got != 10 {
		s.Errorf("second call: got priority %d, want 10", got)
	}

	done := w.add()
	w.edit(a, jobs.Priority(1<<31-1))
	must(s.PutFirst(s.Context(), []int64{done}, "ann", s.now))(s)
	if got := w.get(done).Priority; got != 1<<31-1 {
		s.Errorf("beside the highest priority: got %d, want %d", got, 1<<31-1)
	}

	running := w.claim(10)[0].ID
	if got := must(s.PutFirst(s.Context(), []int64{running, 99}, "ann", s.now))(s); got[0] != (jobs.ActionResult{ID: running,
		State: jobs.Running}) || got[1] != (jobs.ActionResult{ID: 99}) {
		s.Errorf("a running task and no task: got %+v", got)
	}
}

func firstOfALane(s *store) {
	w := newOrderStore(s)
	w.add(jobs.Lane("l"))
	b, c := w.add(jobs.Lane("l"), jobs.Priority(7)), w.add(jobs.Lane("l"), jobs.Queue("y"))
	must(s.PutFirst(s.Context(), []int64{c}, "ann", s.now))(s)
	for _, want := range []int64{c, b} {
		w.finish(w.claim(10)[0], nil)
		w.wantState(want, jobs.Pending)
	}
}

func lastChangesAreKept(s *store) {
	w := newOrderStore(s)
	id := w.add()
	w.pauseTasks(id)
	for i := range 25 {
		s.sleep(time.Second)
		s.edit(id, jobs.Priority(i))
	}

	w.resumeTasks(id)
	got := must(s.TaskChanges(s.Context(), id))(s)
	last := db.TaskChange{At: s.now, By: "bob", Action: db.ActionResume}
	before := db.TaskChange{At: s.now, By: "ann", Action: db.ActionEdit, Text: "priority 23 → 24"}
	if len(got) != 20 || got[19] != last || got[18] != before {
		s.Errorf("got %d changes, the last of which are %+v; want 20, %+v", len(got), got[max(len(got)-2, 0):],
			[]db.TaskChange{before, last})
	}
}

// changesOfPlainTasks changes tasks that plain SQL has inserted with
// dependencies, before a worker has read these dependencies.
func changesOfPlainTasks(s *store) {
	w := newOrderStore(s)
	on := w.add()
	plain := func() int64 {
		s.exec(fmt.Sprintf(`INSERT INTO enqueue (job, after) VALUES ('test', '[%d]')`, on))
		return s.number(`SELECT max(id) FROM tasks`)
	}
	paused, edited, first := plain(), plain(), plain()
	w.pauseTasks(paused)
	w.edit(edited, jobs.Priority(9))
	must(s.PutFirst(s.Context(), []int64{first}, "ann", s.now))(s)
	if got := ids(w.claim(10)); !slices.Equal(got, []int64{on}) {
		s.Fatalf("got claims %v, want %v", got, []int64{on})
	}

	for _, id := range []int64{paused, edited} {
		if got := w.wantState(id, jobs.Blocked); !slices.Equal(got.DependsOn, []int64{on}) {
			s.Errorf("task %d: got dependencies %v, want %v", id, got.DependsOn, []int64{on})
		}
	}

	w.finish(w.get(on), errBad)
	s.apply(db.Cancel("by ann", false, s.now), on)
	w.wantState(paused, jobs.Cancelled)
	w.wantState(edited, jobs.Cancelled)
	late := plain()
	if got := w.pauseTasks(late)[0]; got.State != jobs.Cancelled || got.Done {
		s.Errorf("pause of a task whose dependency was cancelled: got %+v, want cancelled", got)
	}

	s.wantNoTaskPauses()

	on = w.add()
	w.finish(w.claim(10)[0], nil)
	due := s.now.AddDate(100, 0, 0).UnixMilli() // plain SQL has the real clock
	for _, lane := range []string{"NULL", "'l'"} {
		for _, change := range [][]jobs.Option{nil, {jobs.Priority(7)}} {
			s.exec(fmt.Sprintf(`INSERT INTO enqueue (job, run_at, after, lane) VALUES ('test', %d, '[%d]', %s)`, due, on, lane))
			id := s.number(`SELECT max(id) FROM tasks`)
			s.edit(id, change...)
			w.wantState(id, jobs.Scheduled)
		}
	}
}

// editsRaceWithClaims edits tasks while a worker claims them. Each task must
// run either with all old settings or with all new ones.
func editsRaceWithClaims(s *store) {
	w := newOrderStore(s)
	const n = 60
	list := make([]int64, n)
	for i := range list {
		list[i] = w.add()
	}

	edited := make([]bool, n)
	var done sync.WaitGroup
	done.Go(func() {
		for i := range slices.Backward(list) {
			m, err := s.tryEdit(list[i], jobs.Label("new"), jobs.Timeout(time.Minute), func(s *jobs.Spec) { s.Args = []byte(`"new"`) })
			if (err == nil) != (m.State == jobs.Pending) || err != nil && !errors.Is(err, jobs.ErrConflict) {
				s.Errorf("edit of task %d: got %+v, %v", list[i], m, err)
			}
			edited[i] = err == nil
		}
	})
	var claimed []jobs.Task
	for len(claimed) < n {
		claimed = append(claimed, w.claim(2)...)
	}

	done.Wait()
	for _, task := range claimed {
		isNew := edited[slices.Index(list, task.ID)]
		if (string(task.Args) == `"new"`) != isNew || (task.Label == "new") != isNew || (task.Timeout == time.Minute) != isNew {
			s.Errorf("task %d: got args %s, label %q, timeout %v; want those of the edit: %v", task.ID, task.Args, task.Label, task.Timeout,
				isNew)
		}
		if got := s.get(task.ID); got.Label != task.Label || string(got.Args) != string(task.Args) {
			s.Errorf("task %d: got label %q, args %s while it runs; want %q, %s as claimed", task.ID, got.Label, got.Args, task.Label,
				task.Args)
		}
	}
}

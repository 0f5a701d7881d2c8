package dbtest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

const testCursor = "test"

// WithCursor returns a function that opens a database and adds a cursor: a mark
// of how far a reader has read the list of ended tasks. This cursor never
// moves, so the list keeps every ended task, and the suite checks this list
// after each test.
func WithCursor(open func(testing.TB) *db.DB) func(testing.TB) *db.DB {
	return func(t testing.TB) *db.DB {
		d := open(t)
		if err := d.MakeCursor(t.Context(), testCursor, start); err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// checkEnds compares the list of ended tasks with the changes of tasks. It does
// so only if the database has the cursor that WithCursor adds. Each change to a
// final state must be in the list exactly once. The list also has tasks that
// were already final when they were inserted, because a task that they depend
// on did not complete.
func checkEnds(s *store, changes []change) error {
	if s.number(`SELECT count(*) FROM cursors WHERE name = 'test' AND seq = 0`) == 0 {
		return nil
	}

	type end struct{ id, generation int64 }
	listed, updated := map[end]int{}, map[int64]bool{}
	ends, err := s.EndsAfter(s.Context(), 0, 1_000_000)
	if err != nil {
		return err
	}

	last := map[int64]int64{}
	for _, e := range ends {
		listed[end{e.Task.ID, e.Task.GenerationID}]++
		if e.Task.GenerationID <= last[e.Task.ID] || !e.Task.State.Finished() || e.Task.FinishedAt.IsZero() {
			return fmt.Errorf("got the end %+v after one of generation %d", e, last[e.Task.ID])
		}
		last[e.Task.ID] = e.Task.GenerationID
	}

	for _, c := range changes {
		if !updated[c.id] && c.oldState.Finished() { // the first known state is final, so the task was inserted in that state
			delete(listed, end{c.id, c.oldGeneration})
		}

		updated[c.id] = true
		if !c.state.Finished() || c.oldState == c.state {
			continue
		}

		e := end{c.id, c.generation}
		if listed[e] != 1 {
			return fmt.Errorf("task %d of generation %d has become %s: got %d ends, want 1", c.id, c.generation, c.state, listed[e])
		}
		delete(listed, e)
	}

	for e := range listed {
		if updated[e.id] {
			return fmt.Errorf("got an end of task %d with generation %d, want none", e.id, e.generation)
		}
	}

	return nil
}

// ends returns the ended tasks with numbers above after, each as "id state
// reason".
func (s *store) ends(after int64) (list []string) {
	s.Helper()
	for _, e := range must(s.EndsAfter(s.Context(), after, 100))(s) {
		list = append(list, fmt.Sprintf("%d %s %s", e.Task.ID, e.Task.State, e.Task.Reason))
	}
	return list
}

func (s *store) wantEnds(after int64, want ...string) {
	s.Helper()
	if got := s.ends(after); !slices.Equal(got, want) {
		s.Errorf("got ends %q, want %q", got, want)
	}
}

func (s *store) makeCursor(name string) {
	s.Helper()
	if err := s.MakeCursor(s.Context(), name, s.now); err != nil {
		s.Fatal(err)
	}
}

// endOne inserts a task, claims it and completes it.
func (s *store) endOne(w *db.Worker) int64 {
	s.Helper()
	s.insert(commandSpec())
	task := s.claimOnly(w)
	s.finish(w, task, taskspec.Outcome{})
	return task.ID
}

const cursorLease = 30 * time.Second

func (s *store) takeCursor(name, owner string, want int64) {
	s.Helper()
	got, err := s.TakeCursor(s.Context(), name, owner, cursorLease, s.now)
	if err != nil || got != want {
		s.Errorf("owner %s: got cursor %s at %d (%v), want %d", owner, name, got, err, want)
	}
}

func (s *store) wantNotTaken(name, owner string) {
	s.Helper()
	if got, err := s.TakeCursor(s.Context(), name, owner, cursorLease, s.now); !errors.Is(err, sql.ErrNoRows) {
		s.Errorf("owner %s: got cursor %s at %d (%v), want %v", owner, name, got, err, sql.ErrNoRows)
	}
}

var finishedTests = group{
	"without a cursor no ends are stored": func(s *store) {
		s.exec(`DELETE FROM cursors`)
		s.endOne(s.worker())
		if got := s.number(`SELECT count(*) FROM finished`); got != 0 {
			s.Errorf("got %d ends, want none", got)
		}
	},
	"a cursor gets the ends of every kind": func(s *store) {
		w, dead := s.worker(), s.worker()
		s.endOne(w)
		s.makeCursor("mail")
		first := must(s.TakeCursor(s.Context(), "mail", "a", cursorLease, s.now))(s)
		ids := s.insert(commandSpec(), commandSpec(), commandSpec(), commandSpec(jobs.MaxLosses(0)),
			commandSpec(jobs.ExpiresIn(time.Minute)))
		claimed := s.claim(w, 3)
		lost := s.claim(dead, 1)
		dependent := s.insert(commandSpec(jobs.DependsOn(ids[1])), commandSpec(jobs.DependsOn(ids[1])))
		s.insert(commandSpec(jobs.DependsOn(dependent[0])))
		tx := must(s.begin())(s)
		if err := w.FinishTx(s.Context(), tx, db.Finish{Task: claimed[0], Outcome: s.withTimes(claimed[0], taskspec.Outcome{})},
			s.now); err != nil {
			s.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			s.Fatal(err)
		}

		s.finish(w, claimed[1], taskspec.Outcome{Reason: jobs.ReasonExit, Error: "bad"})
		s.apply(db.Cancel("by hand", false, s.now), claimed[2].ID)
		s.finish(w, claimed[2], taskspec.Outcome{Reason: jobs.ReasonCancelled, Error: "cancelled"})
		s.reap(w, s.leases(w)...)
		s.insert(commandSpec(jobs.DependsOn(ids[1])))
		s.sleep(2 * time.Minute)
		s.look(w)
		s.wantEnds(first, "2 completed ", "3 failed exit", "7 cancelled dependency", "8 cancelled dependency", "9 cancelled dependency",
			"4 cancelled cancelled", "5 failed lost", "10 cancelled dependency", "6 cancelled expired")
		if lost[0].ID != ids[3] {
			s.Errorf("got lost task %d, want %d", lost[0].ID, ids[3])
		}
	},
	"an end stays when its task is retried or deleted": func(s *store) {
		s.makeCursor("mail")
		w := s.worker()
		ids := s.insert(commandSpec(jobs.Label("retried")), commandSpec(jobs.Label("deleted"), jobs.Queue("q")))
		began := s.now
		for _, task := range s.claim(w, 2) {
			s.finish(w, task, taskspec.Outcome{Reason: jobs.ReasonExit, Error: "bad"})
		}

		s.apply(db.Retry(s.now, s.now, false), ids[:1]...)
		s.apply(db.Delete(), ids[1:]...)
		s.sleep(time.Minute)
		s.finish(w, s.claimOnly(w), taskspec.Outcome{})
		ends := must(s.EndsAfter(s.Context(), 0, 10))(s)
		if len(ends) != 3 {
			s.Fatalf("got %d ends, want 3", len(ends))
		}

		for i, want := range []jobs.Task{{ID: 1, State: jobs.Failed, Label: "retried", Queue: "default", FinishedAt: began, Error: "bad"},
			{ID: 2, State: jobs.Failed, Label: "deleted", Queue: "q", FinishedAt: began, Error: "bad"},
			{ID: 1, State: jobs.Completed, Label: "retried", Queue: "default", FinishedAt: s.now}} {
			t := ends[i].Task
			got := jobs.Task{ID: t.ID, State: t.State, Label: t.Label, Queue: t.Queue, FinishedAt: t.FinishedAt, Error: t.Error}
			if !equal(got, want) || t.Job != command.Job || t.CreatedAt != start || t.StartedAt.IsZero() {
				s.Errorf("end %d: got %+v, want %+v", i, t, want)
			}
		}

		if args := ends[1].Task.Args; args != nil {
			s.Errorf("got args %s of a deleted task, want none", args)
		}
	},
	"a cursor has one owner until its lease ends": func(s *store) {
		s.makeCursor("mail")
		waits := func(owner string, want bool) {
			s.Helper()
			if got := must(s.CursorWaits(s.Context(), "mail", owner, s.now))(s); got != want {
				s.Errorf("owner %s: got waits %v, want %v", owner, got, want)
			}
		}
		waits("a", false)
		w := s.worker()
		s.endOne(w)
		waits("a", true)
		s.takeCursor("mail", "a", 0)
		waits("a", true)
		waits("b", false)
		s.wantNotTaken("mail", "b")
		s.sleep(20 * time.Second)
		s.takeCursor("mail", "a", 0)
		s.sleep(29 * time.Second)
		s.wantNotTaken("mail", "b")
		s.sleep(time.Second)
		waits("b", true)
		s.takeCursor("mail", "b", 0)
		if err := s.MoveCursor(s.Context(), "mail", "a", 1); !errors.Is(err, jobs.ErrLost) {
			s.Errorf("got %v, want %v", err, jobs.ErrLost)
		}
		if err := s.MoveCursor(s.Context(), "mail", "b", 1); err != nil {
			s.Error(err)
		}
		if err := s.FreeCursor(s.Context(), "mail", "b"); err != nil {
			s.Error(err)
		}

		waits("a", false)
		s.takeCursor("mail", "a", 1)
		s.sleep(-time.Hour) // the clock is set back
		s.takeCursor("mail", "b", 1)
		if err := s.FreeCursor(s.Context(), "mail", "b"); err != nil {
			s.Error(err)
		}

		s.takeCursor("mail", "a", 1)
	},
	"ends stay until all cursors have passed them": func(s *store) {
		s.exec(`DELETE FROM cursors`)
		w := s.worker()
		s.makeCursor("a")
		s.endOne(w)
		s.makeCursor("b") // a new cursor delivers only the tasks that end after its creation
		s.endOne(w)
		s.endOne(w)
		s.takeCursor("a", "x", 0)
		s.takeCursor("b", "x", 1)
		move := func(name string, seq int64) {
			s.Helper()
			if err := s.MoveCursor(s.Context(), name, "x", seq); err != nil {
				s.Error(err)
			}
		}
		move("b", 3)
		s.wantEnds(0, "1 completed ", "2 completed ", "3 completed ")
		move("a", 1)
		s.wantEnds(0, "2 completed ", "3 completed ")
		cursors := must(s.Cursors(s.Context()))(s)
		if want := []db.Cursor{{Name: "a", Behind: 2, Since: s.now}, {Name: "b"}}; !slices.Equal(cursors, want) {
			s.Errorf("got cursors %+v, want %+v", cursors, want)
		}
		if !must(s.RemoveCursor(s.Context(), "a"))(s) || must(s.RemoveCursor(s.Context(), "a"))(s) {
			s.Error("got another result of RemoveCursor, want true, then false")
		}

		s.wantEnds(0)
		s.endOne(w)
		s.wantEnds(0, "4 completed ")
		if seq := must(s.EndsAfter(s.Context(), 0, 1))(s)[0].Seq; seq != 4 {
			s.Errorf("got number %d, want 4: numbers are never used again", seq)
		}
	},
}

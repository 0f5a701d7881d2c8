package dbtest

import (
	"errors"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

func (s *store) steps(id int64) []db.Step {
	s.Helper()
	return must(s.Steps(s.Context(), id))(s)
}

// The group steps tests the steps and progress reports that a running attempt
// stores.
var steps = group{
	"steps are read back in order and unchanged": func(s *store) {
		w, claimed := s.runningTask()
		want := []db.Step{{Name: "charge", GenerationID: claimed.GenerationID, Value: []byte(`{"n":1}`), At: s.now},
			{Name: "pause", GenerationID: claimed.GenerationID, WakeAt: s.now.Add(lease), At: s.now}}
		for i, step := range want {
			for range 2 { // a worker repeats the call if it does not receive the first reply
				if err := w.AddStep(s.Context(), nil, claimsOf(claimed)[0], i+1, step); err != nil {
					s.Fatal(err)
				}
			}
		}

		got := s.steps(claimed.ID)
		if len(got) != len(want) {
			s.Fatalf("got %d steps, want %d", len(got), len(want))
		}

		for i := range want {
			if g, w := got[i], want[i]; g.Name != w.Name || g.GenerationID != w.GenerationID || string(g.Value) != string(w.Value) ||
				!g.WakeAt.Equal(w.WakeAt) || !g.At.Equal(w.At) {
				s.Errorf("step %d: got %+v, want %+v", i+1, g, w)
			}
		}
	},
	"a rejected retry deletes no step": func(s *store) {
		w, claimed := s.runningTask()
		if err := w.AddStep(s.Context(), nil, claimsOf(claimed)[0], 1,
			db.Step{Name: "charge", Value: []byte("1"), At: s.now}); err != nil {
			s.Fatal(err)
		}

		s.finish(w, claimed, taskspec.Outcome{})
		s.exec(`UPDATE tasks SET unique_key = 'k' WHERE id = ?`, claimed.ID)
		s.insert(jobs.Command(command.Command{Argv: []string{"true"}}, jobs.Unique("k"), jobs.In(lease)))
		if m := s.apply(db.Retry(s.now, s.now, false), claimed.ID)[0]; !m.Taken || m.Done {
			s.Fatalf("got taken %v, done %v; want true, false", m.Taken, m.Done)
		}
		if n := len(s.steps(claimed.ID)); n != 1 {
			s.Errorf("got %d steps, want 1", n)
		}

		s.exec(`DELETE FROM tasks WHERE unique_key = 'k' AND id <> ?`, claimed.ID)
		m := s.apply(db.Retry(s.now, s.now, false), claimed.ID)[0]
		if !m.Done || len(s.steps(claimed.ID)) != 0 {
			s.Errorf("got %+v, %d steps; want done, no steps", m, len(s.steps(claimed.ID)))
		}
	},
	"an attempt that lost its task stores no step": func(s *store) {
		w, old := s.runningTask()
		s.finish(w, old, taskspec.Outcome{Reason: jobs.ReasonError})
		claimed := s.claimOnly(w)
		if err := w.AddStep(s.Context(), nil, claimsOf(old)[0], 1, db.Step{Name: "late", At: s.now}); !errors.Is(err, jobs.ErrLost) {
			s.Errorf("got %v, want error %v", err, jobs.ErrLost)
		}
		if err := w.WriteProgress(s.Context(), []db.Report{{ClaimID: claimsOf(old)[0], Progress: []byte(`{"done":1}`)}}); err != nil {
			s.Error(err)
		}
		if got := s.get(claimed.ID); got.Progress != nil || len(s.steps(claimed.ID)) != 0 {
			s.Errorf("got progress %+v, steps %v; want none", got.Progress, s.steps(claimed.ID))
		}
	},
	"a retry keeps the steps of a failed task and deletes those of a completed one": func(s *store) {
		w, claimed := s.runningTask()
		id := claimed.ID
		add := func(task jobs.Task) {
			if err := w.AddStep(s.Context(), nil, claimsOf(task)[0], 1, db.Step{Name: "a", At: s.now}); err != nil {
				s.Fatal(err)
			}
		}
		again := func(want int) jobs.Task {
			if moved := s.apply(db.Retry(s.now, s.now, false), id); !moved[0].Done {
				s.Fatalf("retry: got %+v, want done", moved[0])
			}
			if got := s.steps(id); len(got) != want {
				s.Errorf("got %d steps, want %d", len(got), want)
			}
			return s.claimOnly(w)
		}
		add(claimed)
		s.finish(w, claimed, taskspec.OutcomeOf(nil, jobs.Cancel(errors.New("no"))))
		claimed = again(1)
		s.finish(w, claimed, taskspec.Outcome{})
		add(again(0))
		if left := s.apply(db.Delete(), id); left[0].Done {
			s.Errorf("delete of a running task: got %+v, want not done", left[0])
		}
	},
	"progress does not change the state": func(s *store) {
		w, claimed := s.runningTask()
		if err := w.WriteProgress(s.Context(), []db.Report{{ClaimID: claimsOf(claimed)[0],
			Progress: []byte(`{"done":1}`)}}); err != nil {
			s.Fatal(err)
		}
		if got := s.get(claimed.ID); got.Progress == nil || *got.Progress != (jobs.Progress{Done: 1}) ||
			got.GenerationID != claimed.GenerationID ||
			!got.UpdatedAt.Equal(claimed.UpdatedAt) {
			s.Errorf(`got progress %+v, generation %v, updated at %v; want 1 done, %v, %v`, got.Progress,
				got.GenerationID, got.UpdatedAt, claimed.GenerationID, claimed.UpdatedAt)
		}

		s.finishAll(w, db.Finish{Task: claimed, Outcome: s.withTimes(claimed, taskspec.Outcome{}), Progress: []byte(`{"done":2}`)})
		if got := s.get(claimed.ID); got.Progress == nil || *got.Progress != (jobs.Progress{Done: 2}) {
			s.Errorf("got progress %+v, want 2 done", got.Progress)
		}
	},
}

package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

var failed = taskspec.Outcome{Reason: jobs.ReasonError, Error: "no route"}

var finishes = group{
	"each outcome is stored with its attempt": func(s *store) {
		code := 0
		for _, c := range []struct {
			name    string
			option  jobs.Option
			outcome taskspec.Outcome
			state   jobs.State
			reason  jobs.Reason
			attempt jobs.State
			counted bool
			count   int // Task.Attempt after the finish: the number of attempts that count
		}{
			{"completed", jobs.MaxAttempts(2), taskspec.Outcome{ExitCode: &code, Result: []byte(`{"n":1}`)}, jobs.Completed, "",
				jobs.Completed, true, 1},
			{"retrying", jobs.MaxAttempts(2), failed, jobs.Retrying, jobs.ReasonError, jobs.Failed, true, 1},
			{"failed", jobs.MaxAttempts(1), failed, jobs.Failed, jobs.ReasonError, jobs.Failed, true, 1},
			{"cancelled", jobs.MaxAttempts(2), taskspec.OutcomeOf(nil, jobs.Cancel(errors.New("no"))), jobs.Cancelled,
				jobs.ReasonCancelled, jobs.Cancelled, true, 1},
			{"snoozed", jobs.MaxAttempts(2), taskspec.OutcomeOf(nil, jobs.Snooze(time.Hour)), jobs.Scheduled, "", taskspec.Snoozed,
				false, 0},
			{"given back", jobs.MaxAttempts(1), taskspec.Outcome{Reason: jobs.ReasonShutdown, Error: "stopped"}, jobs.Pending,
				jobs.ReasonShutdown, jobs.Failed, false, 0},
			{"lost", jobs.MaxAttempts(1), taskspec.Outcome{Reason: jobs.ReasonLost, Error: "lost"}, jobs.Pending, jobs.ReasonLost,
				jobs.Failed, false, 0},
		} {
			s.insert(functionSpec(c.name, c.option))
			w := s.worker(c.name)
			claimed := s.claimOnly(w)
			s.sleep(1500 * time.Millisecond)
			if done := s.finish(w, claimed, c.outcome); done.Fenced || done.Change.State != c.state {
				s.Errorf("%s: got fenced %v, change state %v; want false, %v", c.name, done.Fenced, done.Change.State, c.state)
			}

			got := s.wantTask(claimed.ID, c.state, c.reason)
			if got.Attempt != c.count || got.FinishedAt.IsZero() == c.state.Finished() || got.Duration != 1500*time.Millisecond ||
				!got.LeaseExpiresAt.IsZero() ||
				got.GenerationID != claimed.GenerationID+1 || got.Error != c.outcome.Error ||
				string(got.Result) != string(c.outcome.Result) {
				s.Errorf("%s: got %+v; want attempt %v, a finish time %v, duration %v, no lease, "+
					"generation %v, error %v, result %q",
					c.name, got, c.count, c.state.Finished(), 1500*time.Millisecond, claimed.GenerationID+1, c.outcome.Error,
					string(c.outcome.Result))
			}

			records := s.attempts(claimed.ID)
			if len(records) != 1 {
				s.Fatalf("%s: got %d attempts, want 1", c.name, len(records))
			}
			if a := records[0]; a.State != c.attempt || a.Counted != c.counted || a.Number != 1 ||
				a.GenerationID != claimed.GenerationID || a.WorkerID != w.ID() ||
				a.Worker != "w" || a.Reason != c.outcome.Reason || a.Error != c.outcome.Error || !a.FinishedAt.Equal(s.now) ||
				a.Duration != 1500*time.Millisecond {
				s.Errorf(`%s: got %+v; want state %v, counted %v, attempt 1, generation %v, worker id %v, worker "w", reason `+
					"%v, error %v, finished at %v, duration %v",
					c.name, a, c.attempt, c.counted, claimed.GenerationID, w.ID(), c.outcome.Reason, c.outcome.Error, s.now,
					1500*time.Millisecond)
			}
		}

		if n := s.counted(); n[jobs.Completed] != 1 || n[jobs.Failed] != 1 || n[jobs.Cancelled] != 1 {
			s.Errorf("got counts %v, want one completed, one failed and one cancelled", n)
		}
	},
	"a finish of an old generation is rejected": func(s *store) {
		id := s.insert(commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{})))[0]
		w := s.worker()
		old := s.claimOnly(w)
		s.finish(w, old, failed)
		second := s.claimOnly(w)
		if done := s.finish(w, old, taskspec.Outcome{Result: []byte(`1`)}); !done.Fenced {
			s.Errorf("got fenced %v, want true", done.Fenced)
		}
		if got := s.get(id); got.GenerationID != second.GenerationID || got.State != jobs.Running || got.Result != nil {
			s.Errorf("got generation %v, state %v, result %v; want %v, %v, nil", got.GenerationID, got.State, got.Result,
				second.GenerationID, jobs.Running)
		}
	},
	"a finish by another worker is rejected": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, other := s.worker(), s.worker()
		claimed := s.claimOnly(w)
		if done := s.finish(other, claimed, taskspec.Outcome{}); !done.Fenced {
			s.Errorf("got fenced %v, want true", done.Fenced)
		}
		s.wantTask(id, jobs.Running, "")
	},
	"a finish after a reap is rejected, even from the worker that lost the task": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, reaper := s.worker(), s.worker()
		claimed := s.claimOnly(w)
		if reaped := must(revokeAndReap(s.Context(), reaper, must(reaper.Leases(s.Context()))(s), s.now))(s); len(reaped) != 1 {
			s.Fatalf("got reaped tasks %v, want 1", reaped)
		}

		for _, o := range []taskspec.Outcome{{}, failed} {
			if done := s.finish(w, claimed, o); !done.Fenced {
				s.Errorf("got fenced %v, want true", done.Fenced)
			}
		}

		s.wantTask(id, jobs.Pending, jobs.ReasonLost)
		if n := s.counted(); len(n) != 0 || len(s.attempts(id)) != 1 {
			s.Errorf("got counts %v, %d attempts; want no counts and one attempt", n, len(s.attempts(id)))
		}
	},
	"a finish of a deleted task is rejected": func(s *store) {
		id := s.insert(commandSpec())[0]
		w := s.worker()
		claimed := s.claimOnly(w)
		s.exec(`DELETE FROM tasks`)
		if done := s.finish(w, claimed, taskspec.Outcome{}); !done.Fenced || s.get(id).ID != 0 {
			s.Errorf("got fenced %v, task id %v; want true, 0", done.Fenced, s.get(id).ID)
		}
	},
	"a repeated finish changes and counts nothing twice": func(s *store) {
		for _, o := range []taskspec.Outcome{{Result: []byte(`1`)}, failed, {Reason: jobs.ReasonLost}, {Reason: jobs.ReasonShutdown}} {
			id := s.insert(commandSpec())[0]
			w := s.worker()
			claimed := s.claimOnly(w)
			f := db.Finish{Task: claimed, Outcome: s.withTimes(claimed, o),
				Output: db.Output{Add: []db.Chunk{{Seq: 1, Stream: "stdout", At: s.now, Data: []byte("x")}}}}
			first := s.finishAll(w, f)[0]
			before, counted := s.get(id), s.counted()
			s.sleep(time.Second)
			if again := s.finishAll(w, f)[0]; again.Fenced || again.Change.State != first.Change.State {
				s.Errorf("repeated finish: got fenced %v, state %v; want false, %v", again.Fenced, again.Change.State,
					first.Change.State)
			}
			if after := s.get(id); !equal(before, after) || len(s.attempts(id)) != 1 {
				s.Errorf("got %+v, %d attempts; want %+v as before, 1 attempt", after, len(s.attempts(id)), before)
			}

			for state, n := range s.counted() {
				if counted[state] != n {
					s.Errorf("%s: got count %d, want %d as before", state, n, counted[state])
				}
			}

			s.apply(db.Cancel("", false, s.now), id)
		}
	},
	"a cancel before the finish can change the outcome": func(s *store) {
		for name, c := range map[string]struct {
			outcome taskspec.Outcome
			state   jobs.State
			text    string
		}{
			"failure":  {failed, jobs.Cancelled, "by ann"},
			"loss":     {taskspec.Outcome{Reason: jobs.ReasonLost, Error: "lost"}, jobs.Cancelled, "by ann"},
			"shutdown": {taskspec.Outcome{Reason: jobs.ReasonShutdown, Error: "stopped"}, jobs.Cancelled, "by ann"},
			"snooze":   {taskspec.OutcomeOf(nil, jobs.Snooze(time.Hour)), jobs.Cancelled, "by ann"},
			"success":  {taskspec.Outcome{Result: []byte(`1`)}, jobs.Completed, ""},
		} {
			id := s.insert(functionSpec("f", jobs.MaxAttempts(5)))[0]
			w := s.worker("f")
			claimed := s.claimOnly(w) // this copy of the task has no cancel request, because it is older than the request
			s.apply(db.Cancel("by ann", false, s.now), id)
			if done := s.finish(w, claimed, c.outcome); done.Fenced || done.Change.State != c.state {
				s.Errorf("%s: got fenced %v, change state %v; want false, %v", name, done.Fenced, done.Change.State, c.state)
			}
			if got := s.get(id); got.State != c.state || got.Error != c.text || len(s.attempts(id)) != 1 {
				s.Errorf("%s: got state %v, error %q, %d attempts; want %v, %q, 1", name, got.State, got.Error,
					len(s.attempts(id)), c.state, c.text)
			}
		}
		if n := s.counted(); n[jobs.Cancelled] != 4 || n[jobs.Completed] != 1 {
			s.Errorf("got counts %v, want 4 cancelled tasks and 1 completed", n)
		}
	},
	"one cycle finishes several tasks independently": func(s *store) {
		all := s.insert(commandSpec(), commandSpec(), commandSpec())
		w := s.worker()
		claimed := s.claim(w, 3)
		s.finish(w, claimed[1], taskspec.Outcome{})
		done := s.finishAll(w, db.Finish{Task: claimed[0], Outcome: s.withTimes(claimed[0], failed)},
			db.Finish{Task: jobs.Task{ID: 99, GenerationID: 2}},
			db.Finish{Task: claimed[2], Outcome: s.withTimes(claimed[2], taskspec.Outcome{})})
		if done[0].Fenced || done[0].Change.State != jobs.Failed || !done[1].Fenced || done[2].Change.State != jobs.Completed {
			s.Errorf("got results %+v; want the first %s, the second rejected, the third %s", done, jobs.Failed, jobs.Completed)
		}

		s.wantTask(all[0], jobs.Failed, jobs.ReasonError)
		s.wantTask(all[2], jobs.Completed, "")
	},
	"of many ends one is rejected and one repeated, and each is written and counted once": func(s *store) {
		all := s.insert(slices.Repeat([]jobs.Spec{functionSpec("f")}, 30)...)
		w := s.worker("f")
		claimed := s.claim(w, 30)
		ends := make([]db.Finish, len(claimed))
		for i, task := range claimed {
			ends[i] = db.Finish{Task: task, Outcome: s.withTimes(task, taskspec.Outcome{Result: fmt.Append(nil, i), ExitCode: new(i % 2)})}
		}

		s.finishAll(w, ends[20]) // this finish succeeds; the call below repeats it, as a worker does if it has not received the reply
		ends[5].Task.GenerationID--
		done := s.finishAll(w, ends...)
		for i, id := range all {
			got := s.get(id)
			if i == 5 {
				if !done[i].Fenced || got.State != jobs.Running {
					s.Errorf("the end of an older generation: got %+v, %s; want done[i] fenced true, state %v", done[i],
						got.State, jobs.Running)
				}
				continue
			}
			if done[i].Fenced || done[i].Change.State != jobs.Completed || got.State != jobs.Completed ||
				string(got.Result) != fmt.Sprint(i) ||
				got.ExitCode == nil || *got.ExitCode != i%2 || len(s.attempts(id)) != 1 {
				s.Errorf("end %d: got %+v, task %+v; want one attempt that completed with result %d and exit code %d", i, done[i],
					got, i, i%2)
			}
		}

		if n := s.counted(); n[jobs.Completed] != 29 {
			s.Errorf("got %d completions, want 29", n[jobs.Completed])
		}
	},
	"a cycle finishes before it claims": func(s *store) {
		s.insert(commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{})))
		w := s.worker()
		first := s.claimOnly(w)
		got := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true,
			Finish: []db.Finish{{Task: first, Outcome: s.withTimes(first, failed)}},
			Claim:  db.Claim{Free: 1, Lease: lease}}))(s)
		if len(got.Claimed) != 1 || got.Claimed[0].Attempt != 2 {
			s.Errorf("got claims %+v, want one of attempt 2", got.Claimed)
		}
	},
	"the release of an unstarted task restores its state": func(s *store) {
		id := s.insert(commandSpec(jobs.MaxAttempts(3), jobs.WithBackoff(jobs.Backoff{})))[0]
		w := s.worker()
		s.finish(w, s.claimOnly(w), failed)
		s.look(w)
		before := s.get(id)
		for range 3 {
			s.sleep(time.Second)
			claimed := s.claimOnly(w)
			if done := s.finishAll(w, db.Finish{Task: claimed, Release: true})[0]; done.Fenced || done.Change.State != jobs.Pending {
				s.Errorf("got fenced %v, change state %v; want false, %v", done.Fenced, done.Change.State, jobs.Pending)
			}

			got := s.get(id)
			if got.State != jobs.Pending || got.Attempt != before.Attempt || got.Losses != before.Losses ||
				!got.StartedAt.Equal(before.StartedAt) || len(s.attempts(id)) != 1 {
				s.Errorf("got %+v; want state %v, attempt %v, losses %v, started at %v, 1 stored attempt", got, jobs.Pending,
					before.Attempt, before.Losses, before.StartedAt)
			}
		}
	},
	"an unstarted task with a cancel request ends without an attempt": func(s *store) {
		for _, byID := range []bool{false, true} {
			id := s.insert(commandSpec(jobs.MaxAttempts(3), jobs.WithBackoff(jobs.Backoff{})))[0]
			w, reaper := s.worker(), s.worker()
			s.finish(w, s.claimOnly(w), failed)
			s.claimOnly(w)
			s.reap(reaper, s.leases(reaper)...)
			claimed := s.claimOnly(w)
			counted := s.counted()[jobs.Cancelled]
			s.apply(db.Cancel("by ann", false, s.now), id)
			if byID {
				if err := w.Release(s.Context(), claimsOf(claimed), s.now); err != nil {
					s.Error(err)
				}
			} else {
				s.finishAll(w, db.Finish{Task: claimed, Release: true})
			}

			got := s.wantTask(id, jobs.Cancelled, jobs.ReasonCancelled)
			if got.Attempt != 1 || got.Losses != 1 || got.Error != "by ann" || len(s.attempts(id)) != 2 {
				s.Errorf("by id %v: got %+v, %d attempts; want attempt 1, one loss, error \"by ann\", 2 attempts", byID, got,
					len(s.attempts(id)))
			}
			if n := s.counted()[jobs.Cancelled]; n != counted+1 {
				s.Errorf("by id %v: got %d counted cancelled tasks, want %d", byID, n, counted+1)
			}
		}
	},
	"a release is fenced": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, other := s.worker(), s.worker()
		claimed := s.claimOnly(w)
		old := claimed
		old.GenerationID--
		if done := s.finishAll(other, db.Finish{Task: claimed, Release: true})[0]; !done.Fenced {
			s.Errorf("got fenced %v, want true", done.Fenced)
		}
		if done := s.finishAll(w, db.Finish{Task: old, Release: true})[0]; !done.Fenced {
			s.Errorf("got fenced %v, want true", done.Fenced)
		}
		if err := other.Release(s.Context(), claimsOf(claimed), s.now); err != nil {
			s.Error(err)
		}

		s.wantTask(id, jobs.Running, "")
	},
}

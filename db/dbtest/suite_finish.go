package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

var failed = jobs.Outcome{Reason: jobs.ReasonError, Error: "no route"}

var finishes = group{
	"each outcome is stored with its attempt": func(s *store) {
		code := 0
		for _, c := range []struct {
			name    string
			option  jobs.Option
			outcome jobs.Outcome
			state   jobs.State
			reason  jobs.Reason
			attempt jobs.State
			counted bool
			count   int // attempts, from now on
		}{
			{"completed", jobs.MaxAttempts(2), jobs.Outcome{ExitCode: &code, Result: []byte(`{"n":1}`)}, jobs.Completed, "", jobs.Completed, true, 1},
			{"retrying", jobs.MaxAttempts(2), failed, jobs.Retrying, jobs.ReasonError, jobs.Failed, true, 1},
			{"failed", jobs.MaxAttempts(1), failed, jobs.Failed, jobs.ReasonError, jobs.Failed, true, 1},
			{"cancelled", jobs.MaxAttempts(2), jobs.OutcomeOf(nil, jobs.Cancel(errors.New("no"))), jobs.Cancelled, jobs.ReasonCancelled, jobs.Cancelled, true, 1},
			{"snoozed", jobs.MaxAttempts(2), jobs.OutcomeOf(nil, jobs.Snooze(time.Hour)), jobs.Scheduled, "", jobs.Snoozed, false, 0},
			{"given back", jobs.MaxAttempts(1), jobs.Outcome{Reason: jobs.ReasonShutdown, Error: "stopped"}, jobs.Pending, jobs.ReasonShutdown, jobs.Failed, false, 0},
			{"lost", jobs.MaxAttempts(1), jobs.Outcome{Reason: jobs.ReasonLost, Error: "lost"}, jobs.Pending, jobs.ReasonLost, jobs.Failed, false, 0},
		} {
			s.insert(call(c.name, c.option))
			w := s.worker(c.name)
			claimed := s.one(w)
			s.sleep(1500 * time.Millisecond)
			if done := s.finish(w, claimed, c.outcome); done.Fenced || done.Change.State != c.state {
				s.Errorf("%s: %+v", c.name, done)
			}
			got := s.want(claimed.ID, c.state, c.reason)
			if got.Attempt != c.count || got.FinishedAt.IsZero() == c.state.Finished() || got.Duration != 1500*time.Millisecond || !got.LeaseExpiresAt.IsZero() ||
				got.GenerationID != claimed.GenerationID+1 || got.Error != c.outcome.Error || string(got.Result) != string(c.outcome.Result) {
				s.Errorf("%s: %+v", c.name, got)
			}
			records := s.attempts(claimed.ID)
			if len(records) != 1 {
				s.Fatalf("%s: %d attempts", c.name, len(records))
			}
			if a := records[0]; a.State != c.attempt || a.Counted != c.counted || a.Attempt != 1 || a.GenerationID != claimed.GenerationID || a.WorkerID != w.ID() ||
				a.Worker != "w" || a.Reason != c.outcome.Reason || a.Error != c.outcome.Error || !a.FinishedAt.Equal(s.now) || a.Duration != 1500*time.Millisecond {
				s.Errorf("%s: %+v", c.name, a)
			}
		}
		if n := s.ended(); n[jobs.Completed] != 1 || n[jobs.Failed] != 1 || n[jobs.Cancelled] != 1 {
			s.Errorf("counted %v", n)
		}
	},
	"a finish of an old generation is refused": func(s *store) {
		id := s.insert(task(jobs.MaxAttempts(2), jobs.Retry(jobs.Backoff{})))[0]
		w := s.worker()
		old := s.one(w)
		s.finish(w, old, failed)
		second := s.one(w)
		if done := s.finish(w, old, jobs.Outcome{Result: []byte(`1`)}); !done.Fenced {
			s.Errorf("%+v", done)
		}
		if got := s.get(id); got.GenerationID != second.GenerationID || got.State != jobs.Running || got.Result != nil {
			s.Errorf("%+v", got)
		}
	},
	"a finish of another worker is refused": func(s *store) {
		id := s.insert(task())[0]
		w, other := s.worker(), s.worker()
		claimed := s.one(w)
		if done := s.finish(other, claimed, jobs.Outcome{}); !done.Fenced {
			s.Errorf("%+v", done)
		}
		s.want(id, jobs.Running, "")
	},
	"a finish after the task was reaped is refused, even by the worker that lost it": func(s *store) {
		id := s.insert(task())[0]
		w, reaper := s.worker(), s.worker()
		claimed := s.one(w)
		if reaped := must(lose(s.Context(), reaper, must(reaper.Leases(s.Context()))(s), s.now))(s); len(reaped) != 1 {
			s.Fatal(reaped)
		}
		for _, o := range []jobs.Outcome{{}, failed} {
			if done := s.finish(w, claimed, o); !done.Fenced {
				s.Errorf("%+v", done)
			}
		}
		s.want(id, jobs.Pending, jobs.ReasonLost)
		if n := s.ended(); len(n) != 0 || len(s.attempts(id)) != 1 {
			s.Errorf("counted %v, %d attempts", n, len(s.attempts(id)))
		}
	},
	"a finish of a deleted task is refused": func(s *store) {
		id := s.insert(task())[0]
		w := s.worker()
		claimed := s.one(w)
		s.exec(`DELETE FROM tasks`)
		if done := s.finish(w, claimed, jobs.Outcome{}); !done.Fenced || s.get(id).ID != 0 {
			s.Errorf("%+v", done)
		}
	},
	"a finish that is repeated changes and counts nothing twice": func(s *store) {
		for _, o := range []jobs.Outcome{{Result: []byte(`1`)}, failed, {Reason: jobs.ReasonLost}, {Reason: jobs.ReasonShutdown}} {
			id := s.insert(task())[0]
			w := s.worker()
			claimed := s.one(w)
			f := db.Finish{Task: claimed, Outcome: s.times(claimed, o), Output: db.Output{Add: []jobs.Chunk{{Seq: 1, Stream: "stdout", At: s.now, Data: []byte("x")}}}}
			first := s.finishAll(w, f)[0]
			before, counted := s.get(id), s.ended()
			s.sleep(time.Second)
			if again := s.finishAll(w, f)[0]; again.Fenced || again.Change.State != first.Change.State {
				s.Errorf("%+v, then %+v", first, again)
			}
			if after := s.get(id); !equal(before, after) || len(s.attempts(id)) != 1 {
				s.Errorf("%+v\n%+v", before, after)
			}
			for state, n := range s.ended() {
				if counted[state] != n {
					s.Errorf("%s: counted %d, then %d", state, counted[state], n)
				}
			}
			s.moved(s.Cancel(s.Context(), []int64{id}, "", false, s.now))
		}
	},
	"a cancel that comes before the finish is decided anew": func(s *store) {
		for name, c := range map[string]struct {
			outcome jobs.Outcome
			state   jobs.State
			text    string
		}{
			"failure":  {failed, jobs.Cancelled, "by ann"},
			"loss":     {jobs.Outcome{Reason: jobs.ReasonLost, Error: "lost"}, jobs.Cancelled, "by ann"},
			"shutdown": {jobs.Outcome{Reason: jobs.ReasonShutdown, Error: "stopped"}, jobs.Cancelled, "by ann"},
			"snooze":   {jobs.OutcomeOf(nil, jobs.Snooze(time.Hour)), jobs.Cancelled, "by ann"},
			"success":  {jobs.Outcome{Result: []byte(`1`)}, jobs.Completed, ""},
		} {
			id := s.insert(call("f", jobs.MaxAttempts(5)))[0]
			w := s.worker("f")
			claimed := s.one(w) // does not know of the request
			s.moved(s.Cancel(s.Context(), []int64{id}, "by ann", false, s.now))
			if done := s.finish(w, claimed, c.outcome); done.Fenced || done.Change.State != c.state {
				s.Errorf("%s: %+v", name, done)
			}
			if got := s.get(id); got.State != c.state || got.Error != c.text || len(s.attempts(id)) != 1 {
				s.Errorf("%s: %+v", name, got)
			}
		}
		if n := s.ended(); n[jobs.Cancelled] != 4 || n[jobs.Completed] != 1 {
			s.Error(n)
		}
	},
	"one turn finishes many, each for itself": func(s *store) {
		all := s.insert(task(), task(), task())
		w := s.worker()
		claimed := s.claim(w, 3)
		s.finish(w, claimed[1], jobs.Outcome{})
		done := s.finishAll(w, db.Finish{Task: claimed[0], Outcome: s.times(claimed[0], failed)}, db.Finish{Task: jobs.Task{ID: 99, GenerationID: 2}},
			db.Finish{Task: claimed[2], Outcome: s.times(claimed[2], jobs.Outcome{})})
		if done[0].Fenced || done[0].Change.State != jobs.Failed || !done[1].Fenced || done[2].Change.State != jobs.Completed {
			s.Errorf("%+v", done)
		}
		s.want(all[0], jobs.Failed, jobs.ReasonError)
		s.want(all[2], jobs.Completed, "")
	},
	"of many ends one is refused and one is repeated, and each is written and counted once": func(s *store) {
		all := s.insert(slices.Repeat([]jobs.Spec{call("f")}, 30)...)
		w := s.worker("f")
		claimed := s.claim(w, 30)
		ends := make([]db.Finish, len(claimed))
		for i, task := range claimed {
			ends[i] = db.Finish{Task: task, Outcome: s.times(task, jobs.Outcome{Result: fmt.Append(nil, i), ExitCode: new(i % 2)})}
		}
		s.finishAll(w, ends[20]) // an answer that was lost
		ends[5].Task.GenerationID--
		done := s.finishAll(w, ends...)
		for i, id := range all {
			got := s.get(id)
			if i == 5 {
				if !done[i].Fenced || got.State != jobs.Running {
					s.Errorf("the end of an older generation: %+v, %s", done[i], got.State)
				}
				continue
			}
			if done[i].Fenced || done[i].Change.State != jobs.Completed || got.State != jobs.Completed || string(got.Result) != fmt.Sprint(i) ||
				got.ExitCode == nil || *got.ExitCode != i%2 || len(s.attempts(id)) != 1 {
				s.Errorf("end %d: %+v\n%+v", i, done[i], got)
			}
		}
		if n := s.ended(); n[jobs.Completed] != 29 {
			s.Errorf("got %d completions, want 29", n[jobs.Completed])
		}
	},
	"a turn finishes before it claims": func(s *store) {
		s.insert(task(jobs.MaxAttempts(2), jobs.Retry(jobs.Backoff{})))
		w := s.worker()
		first := s.one(w)
		got := must(w.Turn(s.Context(), db.Turn{Now: s.now, Look: true, Finish: []db.Finish{{Task: first, Outcome: s.times(first, failed)}},
			Claim: db.Claim{Free: 1, Lease: lease}}))(s)
		if len(got.Claimed) != 1 || got.Claimed[0].Attempt != 2 {
			s.Errorf("%+v", got)
		}
	},
	"what was never started is given back as it was": func(s *store) {
		id := s.insert(task(jobs.MaxAttempts(3), jobs.Retry(jobs.Backoff{})))[0]
		w := s.worker()
		s.finish(w, s.one(w), failed)
		s.look(w)
		before := s.get(id)
		for range 3 {
			s.sleep(time.Second)
			claimed := s.one(w)
			if done := s.finishAll(w, db.Finish{Task: claimed, Release: true})[0]; done.Fenced || done.Change.State != jobs.Pending {
				s.Errorf("%+v", done)
			}
			got := s.get(id)
			if got.State != jobs.Pending || got.Attempt != before.Attempt || got.Losses != before.Losses || !got.StartedAt.Equal(before.StartedAt) || len(s.attempts(id)) != 1 {
				s.Errorf("%+v", got)
			}
		}
	},
	"what was never started and is to be cancelled ends without an attempt": func(s *store) {
		for _, byID := range []bool{false, true} {
			id := s.insert(task(jobs.MaxAttempts(3), jobs.Retry(jobs.Backoff{})))[0]
			w, reaper := s.worker(), s.worker()
			s.finish(w, s.one(w), failed)
			s.one(w)
			s.reap(reaper, s.leases(reaper)...)
			claimed := s.one(w)
			counted := s.ended()[jobs.Cancelled]
			s.moved(s.Cancel(s.Context(), []int64{id}, "by ann", false, s.now))
			if byID {
				if err := w.Release(s.Context(), claimsOf(claimed), s.now); err != nil {
					s.Error(err)
				}
			} else {
				s.finishAll(w, db.Finish{Task: claimed, Release: true})
			}
			got := s.want(id, jobs.Cancelled, jobs.ReasonCancelled)
			if got.Attempt != 1 || got.Losses != 1 || got.Error != "by ann" || len(s.attempts(id)) != 2 {
				s.Errorf("by id %v: %+v, %d attempts", byID, got, len(s.attempts(id)))
			}
			if n := s.ended()[jobs.Cancelled]; n != counted+1 {
				s.Errorf("by id %v: %d cancelled tasks are counted, then %d", byID, counted, n)
			}
		}
	},
	"a release is fenced": func(s *store) {
		id := s.insert(task())[0]
		w, other := s.worker(), s.worker()
		claimed := s.one(w)
		old := claimed
		old.GenerationID--
		if done := s.finishAll(other, db.Finish{Task: claimed, Release: true})[0]; !done.Fenced {
			s.Errorf("%+v", done)
		}
		if done := s.finishAll(w, db.Finish{Task: old, Release: true})[0]; !done.Fenced {
			s.Errorf("%+v", done)
		}
		if err := other.Release(s.Context(), claimsOf(claimed), s.now); err != nil {
			s.Error(err)
		}
		s.want(id, jobs.Running, "")
	},
}

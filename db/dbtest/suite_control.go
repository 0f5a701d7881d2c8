package dbtest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// inState adds a task in a state and returns its id. The task has one attempt
// and one loss if the state permits it.
func (s *store) inState(state jobs.State, options ...jobs.Option) int64 {
	s.Helper()
	return s.inStateOf("control."+string(state), state, options...)
}

// inStateOf is inState with the job of the task.
func (s *store) inStateOf(job string, state jobs.State, options ...jobs.Option) int64 {
	s.Helper()
	options = append([]jobs.Option{jobs.MaxAttempts(3), jobs.WithBackoff(jobs.Backoff{Delay: time.Hour})}, options...)
	id := s.insert(functionSpec(job, options...))[0]
	w := s.worker(job)
	switch state {
	case jobs.Pending:
	case jobs.Scheduled:
		s.finish(w, s.claimOnly(w), taskspec.OutcomeOf(nil, jobs.Snooze(time.Hour)))
	case jobs.Blocked:
		s.exec(`UPDATE tasks SET state = 'blocked', generation_id = generation_id + 1 WHERE id = ?`, id)
	case jobs.Running:
		s.claimOnly(w)
	case jobs.Retrying:
		s.finish(w, s.claimOnly(w), failed)
	case jobs.Completed:
		s.finish(w, s.claimOnly(w), taskspec.Outcome{Result: []byte("1")})
	case jobs.Failed:
		s.exec(`UPDATE tasks SET max_attempts = 1 WHERE id = ?`, id)
		s.finish(w, s.claimOnly(w), failed)
	case jobs.Cancelled:
		s.finish(w, s.claimOnly(w), taskspec.OutcomeOf(nil, jobs.Cancel(errors.New("no"))))
	}

	if got := s.get(id); got.State != state {
		s.Fatalf("got state %v, want %v", got.State, state)
	}

	return id
}

var controls = group{
	"FailedBefore finds the tasks that failed before a user retried them": func(s *store) {
		failedOnce, pending, completed := s.inState(jobs.Failed), s.inState(jobs.Pending), s.inState(jobs.Completed)
		retrying, again := s.inState(jobs.Retrying), s.inState(jobs.Failed)
		list := []int64{failedOnce, pending, completed, retrying, again}
		want := func(when string, ids ...int64) {
			s.Helper()
			got := must(s.FailedBefore(s.Context(), list))(s)
			if found := slices.Sorted(maps.Keys(got)); !slices.Equal(found, ids) {
				s.Errorf("%s: got %v, want %v", when, found, ids)
			}
		}
		want("before the retry")
		s.apply(db.Retry(s.now, s.now, false), failedOnce, completed, retrying, again)
		want("after the retry", failedOnce, again)
		w := s.worker("control.failed")
		for _, t := range s.claim(w, 2) {
			want("while they run", failedOnce, again)
			outcome := taskspec.Outcome{}
			if t.ID == again {
				outcome = failed
			}
			s.finish(w, t, outcome)
		}

		want("at the end", failedOnce, again)
	},
	"cancel in each state": func(s *store) {
		for _, state := range taskspec.AllStates() {
			id := s.inState(state)
			before := s.get(id)
			counted := s.counted()[jobs.Cancelled]
			m := s.apply(db.Cancel("by ann", false, s.now), id)[0]
			got := s.get(id)
			switch {
			case state.Finished():
				if m != (jobs.ActionResult{ID: id, State: state, Done: true}) || !equal(before, got) {
					s.Errorf("%s: got %+v, task %+v; want %+v, task %+v as before", state, m, got,
						(jobs.ActionResult{ID: id, State: state, Done: true}), before)
				}
			case state == jobs.Running:
				if m != (jobs.ActionResult{ID: id, State: state, Done: true}) || got.State != state ||
					!got.CancelRequestedAt.Equal(s.now) || got.CancelText != "by ann" ||
					got.GenerationID != before.GenerationID {
					s.Errorf(`%s: got %+v, task %+v; want %+v, state %v, cancel requested at %v, cancel text "by ann", generation %v`,
						state, m, got, (jobs.ActionResult{ID: id, State: state, Done: true}), state, s.now, before.GenerationID)
				}
			default:
				if m != (jobs.ActionResult{ID: id, State: jobs.Cancelled, Done: true}) || got.State != jobs.Cancelled ||
					got.Reason != jobs.ReasonCancelled ||
					got.Error != "by ann" || !got.FinishedAt.Equal(s.now) || s.counted()[jobs.Cancelled] != counted+1 {
					s.Errorf(`%s: got %+v, task %+v, %d cancelled tasks counted; want %+v, state %v, reason %v, error "by ann", `+
						`finished at %v, %d counted`, state, m, got, s.counted()[jobs.Cancelled],
						jobs.ActionResult{ID: id, State: jobs.Cancelled, Done: true}, jobs.Cancelled,
						jobs.ReasonCancelled, s.now, counted+1)
				}
			}
		}
	},
	"retry in each state": func(s *store) {
		for _, in := range []time.Duration{0, time.Minute} {
			s.exec(`DELETE FROM tasks`)
			for _, state := range taskspec.AllStates() {
				id := s.inState(state, jobs.ExpiresIn(24*time.Hour))
				before := s.get(id)
				s.sleep(time.Second)
				m := s.apply(db.Retry(s.now.Add(in), s.now, false), id)[0]
				got := s.get(id)
				to := jobs.Pending
				if in > 0 {
					to = jobs.Scheduled
				}

				switch state {
				case jobs.Running, jobs.Blocked:
					if m != (jobs.ActionResult{ID: id, State: state}) || !equal(before, got) {
						s.Errorf("%s: got %+v, task %+v; want %+v, task %+v as before", state, m, got,
							(jobs.ActionResult{ID: id, State: state}), before)
					}
				case jobs.Pending:
					if m != (jobs.ActionResult{ID: id, State: state, Done: true}) || !equal(before, got) {
						s.Errorf("%s: got %+v, task %+v; want %+v, task %+v as before", state, m, got,
							(jobs.ActionResult{ID: id, State: state, Done: true}), before)
					}
				case jobs.Scheduled, jobs.Retrying: // the due time changes, but the counts stay
					if in > 0 {
						to = state
					}
					if m != (jobs.ActionResult{ID: id, State: to, Done: true}) || got.State != to || got.Attempt != before.Attempt ||
						!got.RunAt.Equal(s.now.Add(in)) ||
						!got.ExpiresAt.Equal(before.ExpiresAt) {
						s.Errorf("%s in %v: got %+v, task %+v; want %+v, state %v, attempt %v, run at %v, expires at %v", state, in,
							m, got, (jobs.ActionResult{ID: id, State: to, Done: true}), to, before.Attempt, s.now.Add(in), before.ExpiresAt)
					}
				default: // a finished task starts again with new counts
					if m != (jobs.ActionResult{ID: id, State: to, Done: true}) || got.State != to || got.Attempt != 0 || got.Losses != 0 ||
						!got.RunAt.Equal(s.now.Add(in)) ||
						!got.ExpiresAt.IsZero() || !got.FinishedAt.IsZero() || !got.StartedAt.IsZero() || got.Reason != "" ||
						got.Error != "" || got.Result != nil || got.ExitCode != nil ||
						len(s.attempts(id)) != 1 {
						s.Errorf("%s in %v: got %+v, task %+v; want %+v, state %v, attempt 0, losses 0, run at %v, no other time, "+
							"no outcome, and 1 stored attempt",
							state, in, m, got, (jobs.ActionResult{ID: id, State: to, Done: true}), to, s.now.Add(in))
					}
				}
			}
		}
	},
	"the completed attempt stays when the task is reset": func(s *store) {
		for name, back := range map[string]func(id int64){
			"retry": func(id int64) {
				s.apply(db.Retry(s.now.Add(time.Hour), s.now, false), id)
			},
			"as docs/sql.md says": func(id int64) {
				s.exec(`UPDATE OR IGNORE tasks SET state = 'scheduled', generation_id = generation_id + 1, attempt = 0, losses = 0,
					expires_at = NULL, finished_at = NULL WHERE id = ?`, id)
				s.exec(`UPDATE tasks SET run_at = run_at + 3600000 WHERE id = ?`, id)
			},
			"by hand": func(id int64) {
				s.exec(`UPDATE tasks SET state = 'scheduled', generation_id = generation_id + 1, attempt = 0, finished_at = NULL,
					run_at = run_at + 3600000 WHERE id = ?`, id) // this task becomes due later, so that the next case does not claim it
			},
		} {
			id := s.inState(jobs.Completed)
			before := s.attempts(id)
			back(id)
			if after := s.attempts(id); len(before) != 1 || before[0].State != jobs.Completed || !reflect.DeepEqual(before, after) {
				s.Errorf("%s: got %+v, want one completed attempt as before: %+v", name, after, before)
			}
		}
	},
	"delete in each state": func(s *store) {
		for _, state := range taskspec.AllStates() {
			id := s.inState(state)
			m := s.apply(db.Delete(), id)[0]
			got := s.get(id)
			if state.Finished() && (m != (jobs.ActionResult{ID: id, Done: true}) || got.ID != 0 || len(s.attempts(id)) != 0) {
				s.Errorf("%s: got %+v, task %+v; want the task deleted", state, m, got)
			}
			if !state.Finished() && (m != (jobs.ActionResult{ID: id, State: state}) || got.State != state) {
				s.Errorf("%s: got %+v, task %+v; want the task unchanged", state, m, got)
			}
		}
	},
	"delete deletes the output as well": func(s *store) {
		id := s.insert(commandSpec())[0]
		w := s.worker()
		claimed := s.claimOnly(w)
		s.finishAll(w, db.Finish{Task: claimed, Outcome: s.withTimes(claimed, taskspec.Outcome{}),
			Output: db.Output{Add: []db.Chunk{{Seq: 1, At: s.now, Data: []byte("x")}}}})
		s.apply(db.Delete(), id)
		if n := s.number(`SELECT (SELECT count(*) FROM output) + (SELECT count(*) FROM attempts)`); n != 0 {
			s.Errorf("got %d rows of output and attempts, want 0", n)
		}
	},
	"an unknown task is reported as not found": func(s *store) {
		for name, call := range map[string]func() ([]jobs.ActionResult, error){
			"cancel": func() ([]jobs.ActionResult, error) {
				return s.Apply(s.Context(), []int64{7}, db.Cancel("", false, s.now))
			},
			"retry": func() ([]jobs.ActionResult, error) {
				return s.Apply(s.Context(), []int64{7}, db.Retry(s.now, s.now, false))
			},
			"delete": func() ([]jobs.ActionResult, error) { return s.Apply(s.Context(), []int64{7}, db.Delete()) },
		} {
			if m := must(call())(s); len(m) != 1 || m[0] != (jobs.ActionResult{ID: 7}) {
				s.Errorf("%s: got results %+v, want only %+v", name, m, jobs.ActionResult{ID: 7})
			}
		}
	},
	"a retry with a taken unique key does not change the task": func(s *store) {
		id := s.inState(jobs.Failed, jobs.Unique("k"))
		other := s.insert(functionSpec("control.failed", jobs.Unique("k")))[0]
		before := s.get(id)
		if m := s.apply(db.Retry(s.now, s.now, false), id)[0]; m !=
			(jobs.ActionResult{ID: id, State: jobs.Failed,
				Taken: true}) || !equal(before, s.get(id)) {
			s.Errorf("got %+v, task %+v; want %+v, task %+v as before", m, s.get(id),
				(jobs.ActionResult{ID: id, State: jobs.Failed, Taken: true}), before)
		}

		s.apply(db.Cancel("", false, s.now), other)
		if m := s.apply(db.Retry(s.now, s.now, false), id)[0]; !m.Done || m.Taken {
			s.Errorf("got done %v, taken %v; want true, false", m.Done, m.Taken)
		}
	},
	"the first cancel of a running task sets the text, and a later one may kill at once": func(s *store) {
		id := s.insert(commandSpec())[0]
		w := s.worker()
		claimed := s.claimOnly(w)
		s.apply(db.Cancel("by ann", false, s.now), id)
		want := db.CancelRequest{ClaimID: claimsOf(claimed)[0], Text: "by ann"}
		if got := must(w.CancelRequests(s.Context()))(s); len(got) != 1 || got[0] != want {
			s.Errorf("got cancel requests %+v, want only %+v", got, want)
		}

		s.sleep(time.Second)
		s.apply(db.Cancel("by bob", true, s.now), id)
		s.apply(db.Cancel("by bob", false, s.now), id)
		if got := s.get(id); !got.CancelNow || got.CancelText != "by ann" || !got.CancelRequestedAt.Equal(start) {
			s.Errorf(`got cancel now %v, cancel text %q, cancel requested at %v; want true, "by ann", %v`, got.CancelNow,
				got.CancelText, got.CancelRequestedAt, start)
		}
		if got := must(w.CancelRequests(s.Context()))(s); len(got) != 1 || !got[0].Now {
			s.Errorf("got cancel requests %+v, want one that kills at once", got)
		}
		if got := must(s.worker().CancelRequests(s.Context()))(s); len(got) != 0 {
			s.Errorf("another worker: got cancel requests %+v, want none", got)
		}
	},
	"a long or malformed text of a cancel is cut": func(s *store) {
		for _, state := range []jobs.State{jobs.Pending, jobs.Running} {
			id := s.inState(state)
			s.apply(db.Cancel(strings.Repeat("\xff\x00é", taskspec.MaxError), false, s.now), id)
			if got := s.get(id); len(got.Error)+len(got.CancelText) > taskspec.MaxError {
				s.Errorf("%s: got %d bytes of text, want at most %d", state, len(got.Error)+len(got.CancelText), taskspec.MaxError)
			}
		}
	},
	"an action on many tasks returns results in order": func(s *store) {
		specs := make([]jobs.Spec, 601)
		for i := range specs {
			specs[i] = commandSpec()
		}

		all := s.insert(specs...)
		m := s.apply(db.Cancel("", false, s.now), append(all, 9999)...)
		if len(m) != 602 || m[600] != (jobs.ActionResult{ID: all[600], State: jobs.Cancelled, Done: true}) ||
			m[601] != (jobs.ActionResult{ID: 9999}) || s.counted()[jobs.Cancelled] != 601 {
			s.Errorf("got %d results that end with %+v, counts %v; want 602 that end with %+v and %+v, and 601 cancelled tasks",
				len(m), m[max(0, len(m)-2):], s.counted(), jobs.ActionResult{ID: all[600], State: jobs.Cancelled, Done: true},
				jobs.ActionResult{ID: 9999})
		}
		if m := s.apply(db.Retry(s.now, s.now, false)); len(m) != 0 {
			s.Errorf("got %v, want none", m)
		}
	},
}

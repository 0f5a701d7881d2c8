package dbtest

import (
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// look runs a cycle that makes due tasks pending and claims nothing, and
// returns the next due time.
func (s *store) look(w *db.Worker) time.Time {
	s.Helper()
	return must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true}))(s).NextDue
}

var dues = group{
	"a scheduled task starts at its time, to the millisecond": func(s *store) {
		id := s.insert(commandSpec(jobs.In(time.Hour)))[0]
		w := s.worker()
		if next := s.look(w); !next.Equal(start.Add(time.Hour)) {
			s.Errorf("got next due time %v, want %v", next, start.Add(time.Hour))
		}

		s.sleep(time.Hour - time.Millisecond)
		if got := s.claim(w, 1); len(got) != 0 {
			s.Fatalf("got %v before the due time, want none", ids(got))
		}

		s.wantTask(id, jobs.Scheduled, "")
		s.sleep(time.Millisecond)
		if next := s.look(w); !next.IsZero() {
			s.Errorf("got next due time %v, want none", next)
		}

		s.wantTask(id, jobs.Pending, "")
		s.claimOnly(w)
	},
	"a schedule with @reboot is due once in each boot": func(s *store) {
		schedule := taskspec.WithDefaults(jobs.Schedule{Name: "agent", Cron: "@reboot", Spec: functionSpec("f")})
		put := func([]jobs.Schedule) ([]jobs.Schedule, []string, error) { return []jobs.Schedule{schedule}, nil, nil }
		must(s.Register(s.Context(), db.WorkerInfo{BootID: "known", Lease: lease, StartedAt: s.now}, nil))(s)
		if err := s.ChangeSchedules(s.Context(), "own", s.now, put); err != nil {
			s.Fatal(err)
		}

		for _, step := range []struct {
			boot string
			due  bool
		}{{"own", false}, {"known", false}, {"new", true}, {"new", false}, {"newer", true}, {"new", false}} {
			must(s.Register(s.Context(), db.WorkerInfo{BootID: step.boot, Lease: lease, StartedAt: s.now}, nil))(s)
			next := must(s.NextTick(s.Context(), nil))(s)
			if due := next.Equal(s.now); due != step.due || !due && !next.IsZero() {
				s.Errorf("boot %s: got next tick %v, want one now: %v", step.boot, next, step.due)
			}
			must(s.Tick(s.Context(), s.now, false, func(s jobs.Schedule) ([]time.Time, time.Time, error) {
				return []time.Time{s.NextAt}, time.Time{}, nil
			}, nil))(s)
			s.sleep(time.Minute)
		}

		must(0, s.ChangeSchedules(s.Context(), "", s.now, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
			return nil, []string{"agent"}, nil
		}))(s)
	},
	"due tasks are claimed in the same cycle, by priority": func(s *store) {
		low := s.insert(commandSpec(jobs.Priority(1)))[0]
		high := s.insert(commandSpec(jobs.Priority(9), jobs.In(time.Minute)))[0]
		s.sleep(time.Minute)
		s.wantIDs(ids(s.claim(s.worker(), 2)), []int64{high, low})
	},
	"a cycle that finds a due task writes the ends of other tasks once": func(s *store) {
		w := s.worker()
		s.insert(commandSpec(), commandSpec())
		running := s.claim(w, 2)
		due := s.insert(commandSpec(jobs.In(time.Minute)))[0]
		s.sleep(time.Minute)
		finishes := make([]db.Finish, len(running))
		for i, task := range running {
			finishes[i] = db.Finish{Task: task, Outcome: s.withTimes(task, taskspec.Outcome{})}
		}

		got := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true, Finish: finishes, Claim: db.Claim{Free: 2, Lease: lease}}))(s)
		s.wantIDs(ids(got.Claimed), []int64{due})
		for i, f := range got.Finished {
			if f.Fenced || f.Change.State != jobs.Completed {
				s.Errorf("end of task %d: got %+v, want a completed task", running[i].ID, f)
			}
		}

		if n := s.counted()[jobs.Completed]; n != 2 || len(got.Finished) != 2 {
			s.Errorf("got %d counted tasks and %d results, want 2 and 2", n, len(got.Finished))
		}
	},
	"a cycle that does not look for due tasks promotes none": func(s *store) {
		s.insert(commandSpec(jobs.In(time.Second)))
		w := s.worker()
		s.sleep(time.Minute)
		got := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Claim: db.Claim{Free: 1, Lease: lease}}))(s)
		if len(got.Claimed) != 0 || !got.NextDue.IsZero() {
			s.Errorf("got %d claims and next due time %v, want neither", len(got.Claimed), got.NextDue)
		}
	},
	"more tasks become due than fit in one statement": func(s *store) {
		specs := make([]jobs.Spec, 1100)
		for i := range specs {
			specs[i] = commandSpec(jobs.In(time.Minute))
		}

		s.insert(specs...)
		s.sleep(time.Minute)
		w := s.worker()
		if next := s.look(w); !next.IsZero() {
			s.Errorf("got next due time %v, want none", next)
		}
		if n := s.number(`SELECT count(*) FROM tasks WHERE state = 'pending'`); n != 1100 {
			s.Errorf("got %d pending tasks, want 1100", n)
		}
	},
	"one look promotes a limited number and reports that there are more": func(s *store) {
		const most = 11_000
		s.exec(`DROP TRIGGER history_update`) // the trigger of the table history would take most of the time
		s.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO tasks
			(generation_id, state, queue, job, priority, run_at, max_losses, created_at, updated_at) SELECT 1, 'scheduled',
			'default', 'command', 5, 1, 3, 1, 1 FROM n`, most)
		w := s.worker()
		looks := 0
		for next := start; !next.IsZero(); looks++ {
			if next = s.look(w); !next.IsZero() && next.After(s.now) {
				s.Fatalf("got next due time %v, want none or at most %v", next, s.now)
			}
		}

		if n := s.number(`SELECT count(*) FROM tasks WHERE state = 'pending'`); n != most || looks != 2 {
			s.Errorf("got %d pending tasks after %d looks, want %d after 2", n, looks, most)
		}
	},
	"the next due time is that of the earliest task": func(s *store) {
		w := s.worker()
		if next := s.look(w); !next.IsZero() {
			s.Errorf("got %v, want none", next)
		}

		s.insert(commandSpec(jobs.In(3*time.Minute)), commandSpec(jobs.In(2*time.Minute)), commandSpec(jobs.ExpiresIn(time.Minute)))
		for _, want := range []time.Duration{1, 2, 3} {
			if next := s.look(w); !next.Equal(start.Add(want * time.Minute)) {
				s.Errorf("got next due time %v, want %v", next, want*time.Minute)
			}
			s.now = start.Add(want * time.Minute)
		}
	},
	"a task that has not started by its expiry never starts": func(s *store) {
		waiting := s.insert(commandSpec(jobs.ExpiresIn(time.Minute)))[0]
		late := s.insert(commandSpec(jobs.In(time.Hour), jobs.ExpiresIn(time.Minute)))[0]
		w := s.worker()
		s.sleep(time.Minute)
		if got := s.claim(w, 2); len(got) != 0 {
			s.Errorf("got %v, want none", ids(got))
		}
		if got := s.wantTask(waiting, jobs.Cancelled, jobs.ReasonExpired); !got.FinishedAt.Equal(s.now) || got.Error == "" ||
			len(s.attempts(waiting)) != 0 {
			s.Errorf("got finished at %v, error %q, %d attempts; want %v, an error text, no attempt", got.FinishedAt, got.Error,
				len(s.attempts(waiting)), s.now)
		}

		s.wantTask(late, jobs.Scheduled, "")
		s.sleep(2 * time.Hour)
		s.claim(w, 2)
		s.wantTask(late, jobs.Cancelled, jobs.ReasonExpired)
		if n := s.counted()[jobs.Cancelled]; n != 2 {
			s.Errorf("got %d counted cancelled tasks, want 2", n)
		}
	},
	"only the first start counts for the expiry": func(s *store) {
		id := s.insert(commandSpec(jobs.ExpiresIn(time.Minute), jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{})))[0]
		w := s.worker()
		first := s.claimOnly(w)
		s.sleep(time.Hour)
		s.look(w)
		s.wantTask(id, jobs.Running, "")
		s.finish(w, first, taskspec.Outcome{Reason: jobs.ReasonError, Error: "x"})
		s.look(w)
		s.claimOnly(w)
	},
	"after the clock is set back by years, waits keep their length": func(s *store) {
		const ahead = 4 * 365 * 24 * time.Hour
		wall := s.insert(commandSpec(jobs.In(2 * ahead)))[0] // enqueued while the clock was right, so its due time stays
		s.sleep(ahead)
		w := s.worker()
		retry := commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Minute}))
		id := s.insert(retry)[0]
		s.finish(w, s.claimOnly(w), taskspec.Outcome{Reason: jobs.ReasonError, Error: "x"})
		wait := s.get(id).RunAt.Sub(s.now)
		at := s.insert(commandSpec(jobs.In(time.Hour),
			jobs.ExpiresIn(2*time.Hour)))[0] // enqueued while the clock was ahead, so SetBack must correct its due time and expiry
		must(0, s.SetLimit(s.Context(), db.Limit{Target: db.Target{Kind: db.LaneTarget, Name: "l"}, Rate: 1,
			Per: time.Minute, Burst: 1}, s.now))(s)
		s.insert(commandSpec(jobs.Lane("l")), commandSpec(jobs.Lane("l")))
		s.finish(w, s.claimOnly(w), taskspec.Outcome{})
		if got := s.claim(w, 1); len(got) != 0 {
			s.Errorf("got %v, want none: the rate of the lane is used up", ids(got))
		}

		ended := s.insert(commandSpec(jobs.Queue("ended")))[0]
		s.apply(db.Cancel("enough", false, s.now), ended)

		s.sleep(-ahead)
		if n := must(s.SetBack(s.Context(), s.now))(s); n != 1 {
			s.Errorf("got %d tasks set back, want 1", n)
		}
		if n := must(s.SetBack(s.Context(), s.now))(s); n != 0 {
			s.Errorf("got %d tasks set back again, want none", n)
		}
		if got := s.get(ended).FinishedAt; !got.Equal(s.now) {
			s.Errorf("a task that ended by the clock that was ahead has ended at %v, want %v: else it is deleted years late", got,
				s.now)
		}
		if got := must(s.LastHeartbeat(s.Context()))(s); got.After(s.now) {
			s.Errorf("the last sign of life came at %v, want at most %v", got, s.now)
		}
		if got := s.get(wall).RunAt; !got.Equal(start.Add(2 * ahead)) {
			s.Errorf("a task of before is due at %v, want %v as it was", got, start.Add(2*ahead))
		}
		if got := s.get(at); !got.RunAt.Equal(start.Add(time.Hour)) || !got.ExpiresAt.Equal(start.Add(3*time.Hour)) {
			s.Errorf("a task enqueued for an hour later: got due time %v, expiry %v; want %v and %v",
				got.RunAt, got.ExpiresAt, start.Add(time.Hour), start.Add(3*time.Hour))
		}
		if got := s.get(id).RunAt; !got.Equal(start.Add(wait)) {
			s.Errorf("got the retry due at %v, want %v", got, start.Add(wait))
		}

		s.sleep(min(wait, time.Minute) - time.Millisecond)
		s.wantIDs(ids(s.claim(w, 3)), nil)
		s.sleep(wait + time.Minute)
		s.wantIDs(ids(s.claim(w, 3)), []int64{id, at + 2})
	},
	"after the clock is set back, a task without a start time does not wait for it": func(s *store) {
		w := s.worker()
		s.sleep(time.Hour)
		first := s.insert(commandSpec())[0]
		after, paused := s.insert(commandSpec(jobs.DependsOn(first)))[0], s.insert(commandSpec(jobs.Paused()))[0]
		later := s.insert(commandSpec(jobs.DependsOn(first), jobs.In(time.Minute)))[0]
		edited, key := s.insert(commandSpec())[0], commandSpec(jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
		s.insert(key)
		again := s.insert(commandSpec(jobs.DependsOn(first)))[0]
		s.apply(db.Cancel("", false, s.now), again)
		s.apply(db.Retry(s.now, s.now, false), again)

		s.sleep(-time.Hour)
		must(s.SetBack(s.Context(), s.now))(s)
		must(s.SetBack(s.Context(), s.now))(s)
		s.edit(edited, jobs.Priority(7))
		s.wantTask(edited, jobs.Pending, "")
		s.apply(db.ResumeTask("me", s.now), paused)
		s.wantTask(paused, jobs.Pending, "")
		for _, t := range s.claim(w, 9) {
			s.finish(w, t, taskspec.Outcome{})
		}

		s.wantTask(after, jobs.Pending, "")
		s.wantTask(again, jobs.Pending, "")
		s.wantTask(later, jobs.Scheduled, "") // it waits for a time, so it waits an hour longer
		s.sleep(time.Hour - time.Minute)
		if added := must(s.Insert(s.Context(), []jobs.Spec{key}, s.now))(s)[0]; !added.Kept {
			s.Errorf("got %+v before the hour is over, want the key paused", added)
		}

		s.sleep(time.Minute)
		if added := must(s.Insert(s.Context(), []jobs.Spec{key}, s.now))(s)[0]; added.Kept {
			s.Errorf("got %+v after an hour, want a new task", added)
		}
	},
	"a task that is released before its start can still expire": func(s *store) {
		id := s.insert(commandSpec(jobs.ExpiresIn(time.Minute)))[0]
		w := s.worker()
		claimed := s.claimOnly(w)
		s.finishAll(w, db.Finish{Task: claimed, Release: true})
		if got := s.wantTask(id, jobs.Pending, ""); !got.StartedAt.IsZero() || got.Attempt != 0 {
			s.Errorf("got started at %v, attempt %v; want none, 0", got.StartedAt, got.Attempt)
		}
		s.sleep(time.Minute)
		s.look(w)
		s.wantTask(id, jobs.Cancelled, jobs.ReasonExpired)
	},
}

// wantSameTask fails the test if a claimed task differs from the stored one.
func (s *store) wantSameTask(claimed, stored jobs.Task) {
	s.Helper()
	if !equal(claimed, stored) {
		s.Errorf("got claimed task %+v\nwant stored task %+v", claimed, stored)
	}
}

package dbtest

import (
	"math"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The group foreigners writes rows with plain SQL into tables that only runner
// should write. None of these rows may stop a worker.
var foreigners = group{
	"an attempt without a start has no duration": func(s *store) {
		id := s.insert(commandSpec())[0]
		s.exec(`INSERT INTO attempts (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at)
			VALUES (?, 7, 1, 'failed', 1, 0, 0, 0)`, id)
		attempts := must(s.Attempts(s.Context(), id))(s)
		if len(attempts) != 1 || attempts[0].Duration != 0 || attempts[0].State != jobs.Failed {
			s.Errorf("got attempts %+v, want one that failed, of duration 0", attempts)
		}
	},
	"a task cancelled before its start has no duration, whatever its outcome was": func(s *store) {
		on := s.insert(functionSpec("on"))[0]
		plain := s.insert(functionSpec("x"), functionSpec("x"), functionSpec("x", jobs.DependsOn(on)), functionSpec("started"))
		s.exec(`UPDATE tasks SET outcome = '[]' WHERE id = ?`, plain[1])
		s.exec(`UPDATE tasks SET started_at = ? WHERE id = ?`, s.now.Add(-time.Hour).UnixMilli(), plain[3])
		s.apply(db.Cancel("by ann", false, s.now), plain[0], plain[1], plain[3], on)
		s.wantTask(plain[0], jobs.Cancelled, jobs.ReasonCancelled)
		s.wantTask(plain[1], jobs.Cancelled, jobs.ReasonCancelled)
		s.wantTask(plain[2], jobs.Cancelled, jobs.ReasonDependency)
		if n := s.number(`SELECT count(*) FROM tasks_view WHERE duration IS NULL AND error IS NOT NULL`); n != 4 {
			s.Errorf("got %d cancelled tasks without a duration, want 4", n)
		}
		if n := s.number(`SELECT count(*) FROM tasks_view WHERE duration = 0`); n != 1 {
			s.Errorf("got %d cancelled tasks of duration 0, want only the one whose attempt has left no outcome", n)
		}
	},
	"a cancel request with an extreme generation cancels no task": func(s *store) {
		s.exec(`INSERT INTO cancel_requests (task_id, generation_id, requested_at, now, text)
			VALUES (1, ?, 1000, 0, 'x'), (2, 7, 1000, 0, 'x')`,
			int64(math.MaxInt64))
		s.insert(commandSpec(), commandSpec())
		w := s.worker()
		for _, claimed := range s.claim(w, 2) {
			if got := s.wantTask(claimed.ID, jobs.Running, ""); !got.CancelRequestedAt.IsZero() {
				s.Errorf("task %d: got a cancel request of %v, want none", claimed.ID, got.CancelRequestedAt)
			}
			if got := s.finish(w, claimed, taskspec.Outcome{Reason: jobs.ReasonError, Error: "no"}); got.Change.State == jobs.Cancelled {
				s.Errorf("task %d: got state %s, want another", claimed.ID, got.Change.State)
			}
		}
	},
	"extreme times of a row do not stop the correction of the clock": func(s *store) {
		if s.Server() != nil {
			return // on a server, a constraint of the table rejects the extreme times of this test
		}

		s.insert(commandSpec(), commandSpec(), commandSpec())
		const change = `UPDATE tasks SET state = 'scheduled', generation_id = 2, created_at = ?, run_at = ?, expires_at = ? WHERE id = ?`
		year := s.now.Add(365 * 24 * time.Hour).UnixMilli()
		s.exec(change, int64(math.MaxInt64), int64(math.MaxInt64), nil, 1)
		s.exec(change, int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), 2)
		s.exec(change, year, year+1000, nil, 3)
		must(s.SetBack(s.Context(), s.now))(s)
		if got, want := s.wantTask(3, jobs.Scheduled, "").RunAt, s.now.Add(time.Second); !got.Equal(want) {
			s.Errorf("got run at %v, want %v", got, want)
		}
	},
	"the record of an attempt replaces a row with its key": func(s *store) {
		id := s.insert(commandSpec())[0]
		w := s.worker()
		claimed := s.claimOnly(w)
		s.exec(`INSERT INTO attempts (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at)
			VALUES (?, ?, 7, 'snoozed', 0, 0, 0, 0)`, id, claimed.GenerationID)
		s.finish(w, claimed, taskspec.Outcome{Reason: jobs.ReasonError, Error: "no"})
		attempts := must(s.Attempts(s.Context(), id))(s)
		if len(attempts) != 1 || attempts[0].Number != 1 || attempts[0].State != jobs.Failed || attempts[0].Error != "no" {
			s.Errorf("got attempts %+v, want one: the first, failed with error no", attempts)
		}
	},
}

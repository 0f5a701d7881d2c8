package dbtest

import (
	"math"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// What other programs may write (section 11 of the command line's contract), and what they might write by mistake: it is refused by
// the table, or its task fails alone. No row stops the others.
var plains = group{
	"args are enough": func(s *store) {
		s.exec(`INSERT INTO tasks (args) VALUES (json_array('backup.sh', '--full'))`)
		s.now = time.Now() // the column's default is the clock of SQLite
		got := s.one(s.worker())
		argv, err := jobs.Argv(got.Args)
		if err != nil || len(argv) != 2 || got.Queue != jobs.DefaultQueue || got.Priority != jobs.DefaultPriority || got.MaxLosses != jobs.DefaultMaxLosses ||
			got.KillAfter != jobs.DefaultKillAfter || got.Backoff != jobs.DefaultBackoff || got.OutputLimit != jobs.DefaultOutputLimit || got.MaxAttempts != 3 {
			s.Errorf("%+v %v", got, err)
		}
	},
	"a time in the future is kept": func(s *store) {
		s.exec(`INSERT INTO tasks (run_at) VALUES (?)`, start.Add(time.Hour).UnixMilli())
		w := s.worker()
		if next := s.look(w); !next.Equal(start.Add(time.Hour)) {
			s.Error(next)
		}
		s.want(1, jobs.Scheduled, "")
	},
	"a due time of 0, or before it, holds nobody up": func(s *store) {
		s.exec(`INSERT INTO tasks (run_at) VALUES (0), (0)`)
		s.exec(`INSERT INTO tasks (run_at, expires_at) VALUES (0, 0)`)
		if w := s.worker(); !s.look(w).IsZero() {
			s.Error("it is not looked at")
		}
		s.exec(`INSERT INTO tasks (run_at) VALUES (-5)`)
		expiring := s.insert(call("f", jobs.ExpiresIn(time.Minute)))[0]
		later := s.insert(task(jobs.In(time.Minute)))[0]
		s.sleep(time.Minute)
		s.wantIDs(ids(s.claim(s.worker(), 9)), []int64{1, 2, 4, later})
		s.want(3, jobs.Cancelled, jobs.ReasonExpired)
		s.want(expiring, jobs.Cancelled, jobs.ReasonExpired)
	},
	"numbers at the ends of their range stop nobody": func(s *store) {
		s.exec(`INSERT INTO tasks (run_at, timeout, kill_after, backoff_delay, backoff_max, output_limit, max_attempts, max_losses, priority, expires_at)
			VALUES (1, ?1, ?1, ?1, ?1, ?1, 2147483648, ?1 - 1, 2147483647, ?1)`, int64(math.MaxInt64))
		s.exec(`INSERT INTO tasks (run_at) VALUES (?)`, int64(math.MaxInt64))
		s.exec(`INSERT INTO tasks (run_at) VALUES (?)`, int64(math.MinInt64))
		good := s.insert(task())[0]
		w := s.worker()
		claimed := s.claim(w, 9)
		s.wantIDs(ids(claimed), []int64{1, 3, good})
		if t := claimed[0]; t.Timeout < 0 || t.KillAfter < 0 || t.Backoff.Delay < 0 || t.Backoff.Max < 0 || t.Timeout < 100*365*24*time.Hour {
			s.Errorf("%+v", t)
		}
		for _, t := range claimed {
			s.finish(w, t, failed)
		}
		s.want(1, jobs.Retrying, jobs.ReasonError)
	},
	"rows that would stop a claim are refused": func(s *store) {
		for _, row := range []string{
			`(attempt) VALUES (1)`, // without max_attempts the claim would make it 2 of the job's 1
			`(attempt, max_attempts) VALUES (2, 2)`,
			`(attempt, max_attempts) VALUES (-1, 2)`,
			`(losses, max_losses) VALUES (5, 3)`,
			`(max_attempts) VALUES (0)`,
			`(state) VALUES ('started')`, `(state) VALUES ('Pending')`, `(state) VALUES ('')`, `(state) VALUES (NULL)`,
			`(state) VALUES ('running')`, `(state) VALUES ('completed')`,
			`(state, finished_at) VALUES ('pending', 1)`,
			`(state, lease_expires_at) VALUES ('pending', 1)`,
			`(state, lease_expires_at, worker_id) VALUES ('running', 1, 'w')`, // max_attempts is unknown
			`(state, finished_at, lease_expires_at) VALUES ('failed', 1, 1)`,
		} {
			if _, err := s.raw.ExecContext(s.Context(), `INSERT INTO tasks `+row); err == nil {
				s.Errorf("taken: %s", row)
			}
		}
	},
	"wrong types, ranges and lengths are refused": func(s *store) {
		for _, row := range []string{
			`(priority) VALUES ('high')`, `(priority) VALUES (2147483648)`, `(run_at) VALUES ('now')`, `(run_at) VALUES (1.5)`, `(run_at) VALUES (NULL)`,
			`(args) VALUES ('{')`, `(args) VALUES ('')`, `(args) VALUES (x'5b5d')`, `(job) VALUES ('')`, `(job) VALUES (NULL)`, `(queue) VALUES ('')`,
			`(timeout) VALUES (0)`, `(kill_after) VALUES (-1)`, `(backoff) VALUES ('quadratic')`, `(backoff_delay) VALUES (-1)`, `(output_limit) VALUES (-1)`,
			`(env) VALUES ('x')`, `(max_losses) VALUES (-1)`, `(generation_id) VALUES (-1)`,
			`(label) VALUES ('` + strings.Repeat("é", 101) + `')`, `(queue) VALUES ('` + strings.Repeat("q", 101) + `')`,
			`(args) VALUES ('` + strings.Repeat("[", jobs.MaxDepth+1) + strings.Repeat("]", jobs.MaxDepth+1) + `')`,
			`(args) VALUES ('"` + strings.Repeat("x", jobs.MaxArgs-1) + `"')`,
		} {
			if _, err := s.raw.ExecContext(s.Context(), `INSERT INTO tasks `+row); err == nil {
				s.Errorf("taken: %.80s", row)
			}
		}
	},
	"odd rows that are taken can be listed": func(s *store) {
		s.exec(`INSERT INTO tasks (args, env, retry_on, unique_key, created_by, label) VALUES ('1', '[1]', 'x', '', '', '')`)
		s.exec(`INSERT INTO tasks (args, env) VALUES ('null', '{"A": 1}')`)
		if got := s.list(jobs.Filter{}); len(got) != 2 {
			s.Error(got)
		}
	},
	"rows that name others wait for them": func(s *store) {
		w := newOrder(s)
		first := w.add()
		s.exec(`INSERT INTO tasks (job, run_at, after, lane) VALUES ('test', 0, json_array(?), 'l')`, first)
		s.exec(`INSERT INTO tasks (job, run_at, lane) VALUES ('test', 0, 'l')`)
		s.exec(`INSERT INTO tasks (job, run_at, after_any) VALUES ('test', 0, json_array(?))`, first)
		s.exec(`INSERT INTO tasks (job, run_at, after, after_any) VALUES ('test', 0, '[1]', '[2]')`)
		for _, bad := range []string{`[99]`, `7`, `["1"]`, `[6]`, `[1.5]`, `[[1]]`, `x`, `{}`, `[null]`, `[0]`, `[-1]`} {
			if _, err := s.raw.ExecContext(s.Context(), `INSERT INTO tasks (after) VALUES (?)`, bad); err == nil {
				s.Errorf("%s was taken", bad)
			}
		}
		claimed := w.claim(10)
		s.wantIDs(ids(claimed), []int64{first, 3})
		for _, id := range []int64{2, 4, 5} {
			w.is(id, jobs.Blocked)
		}
		w.finish(claimed[0], jobs.Cancel(errBad))
		s.want(2, jobs.Cancelled, jobs.ReasonDependency)
		w.is(4, jobs.Pending)
		s.want(5, jobs.Cancelled, jobs.ReasonDependency)
		if on, by, err := s.Dependencies(s.Context(), first); err != nil || len(on) != 0 || len(by) != 3 || by[0].ID != 2 || by[0].State != jobs.Cancelled {
			s.Error(on, by, err)
		}
	},
	"the reset by hand works": func(s *store) {
		id := s.inState(jobs.Failed)
		s.exec(`UPDATE OR IGNORE tasks SET state = 'scheduled', generation_id = generation_id + 1, attempt = 0, losses = 0, expires_at = NULL, finished_at = NULL
			WHERE state = 'failed' AND finished_at > 0`)
		if got := s.one(s.worker("control.failed")); got.ID != id || got.Attempt != 1 {
			s.Errorf("%+v", got)
		}
	},
}

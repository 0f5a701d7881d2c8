package dbtest

import (
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// The group plains tests rows that other programs write correctly or by
// mistake. The table rejects a malformed row, or the task of that row fails. A
// malformed row never stops other tasks.
var plains = group{
	"a row needs nothing but args": func(s *store) {
		s.exec(`INSERT INTO enqueue (args) VALUES (json_array('backup.sh', '--full'))`)
		s.now = time.Now() // the view sets the default due time with SQLite's clock
		got := s.claimOnly(s.worker())
		argv, err := taskspec.Argv(got.Args)
		if err != nil || len(argv) != 2 || got.Queue != jobs.NewSpec("").Queue || got.Priority != taskspec.DefaultPriority ||
			got.MaxLosses != jobs.NewSpec("").MaxLosses ||
			got.KillAfter != jobs.NewSpec("").KillAfter || got.Backoff != jobs.NewSpec("").Backoff ||
			got.OutputLimit != jobs.NewSpec("").OutputLimit || got.MaxAttempts != 3 {
			s.Errorf("got task %+v, arguments %q and error %v; want two arguments, queue %v, priority %v, max losses %v, kill after %v, "+
				"backoff %v, output limit %v, max attempts 3",
				got, argv, err, jobs.NewSpec("").Queue, taskspec.DefaultPriority, jobs.NewSpec("").MaxLosses, jobs.NewSpec("").KillAfter,
				jobs.NewSpec("").Backoff, jobs.NewSpec("").OutputLimit)
		}
	},
	"every task option can be set": plainOptions,
	"a row has its correct state without a worker": func(s *store) {
		due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		s.exec(`INSERT INTO enqueue (args, run_at) VALUES (json_array('true'), 0), (json_array('true'), ?)`, due.UnixMilli())
		s.wantTask(1, jobs.Pending, "")
		if got := s.wantTask(2, jobs.Scheduled, ""); got.GenerationID != 1 || !got.RunAt.Equal(due) {
			s.Errorf("got generation %v, run at %v; want 1, %v", got.GenerationID, got.RunAt, due)
		}

		s.now = time.Now()
		w := s.worker()
		if next := s.look(w); !next.Equal(due) {
			s.Errorf("got next due time %v, want %v", next, due)
		}
		s.wantIDs(ids(s.claim(w, 9)), []int64{1})
	},
	"an INSERT returns the id, and a rollback leaves nothing": func(s *store) {
		tx := must(s.raw.BeginTx(s.Context(), nil))(s)
		if _, err := tx.ExecContext(s.Context(), s.statement(`INSERT INTO enqueue (job, input) VALUES ('command', 'x')`)); err != nil {
			s.Error(err)
		}

		var id int64
		if err := tx.QueryRowContext(s.Context(), s.statement(`SELECT max(id) FROM tasks`)).Scan(&id); err != nil || id != 1 {
			s.Errorf("got error %v, id %v; want nil, 1", err, id)
		}
		if err := tx.Rollback(); err != nil {
			s.Error(err)
		}
		if n := s.number(`SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM inputs)`); n != 0 {
			s.Errorf("got %d rows, want none", n)
		}
	},
	"an INSERT with a taken unique key adds nothing": func(s *store) {
		first := s.insert(commandSpec(jobs.Unique("k")))[0]
		s.exec(`INSERT INTO enqueue (args, unique_key, input) VALUES (json_array('true'), 'k', 'x')`)
		s.exec(`INSERT INTO enqueue (args, unique_key, after) VALUES (json_array('true'), 'k', json_array(?))`, first)
		if n := s.number(`SELECT (SELECT count(*) FROM tasks) * 100 + (SELECT count(*) FROM inputs) + (SELECT count(*)
			FROM dependencies)`); n != 100 {
			s.Errorf("got %d, want one task and nothing else", n)
		}

		s.exec(`INSERT INTO enqueue (unique_key, after) VALUES ('l', json_array(?))`, first)
		s.exec(`INSERT INTO enqueue (unique_key, after) VALUES ('l', json_array(?))`, first)
		if n := s.number(`SELECT (SELECT count(*) FROM tasks) * 100 + (SELECT count(*) FROM dependencies)`); n != 201 {
			s.Errorf("got %d, want two tasks and one dependency", n)
		}
	},
	"input is stored in its own table": func(s *store) {
		s.exec(`INSERT INTO enqueue (input) VALUES ('three words here'), (x'00ff'), (''), (NULL)`)
		for i, want := range []string{"three words here", "\x00\xff", "", ""} {
			id := int64(i + 1)
			data := must(s.Input(s.Context(), id))(s)
			if got := s.get(id); string(data) != want || got.InputBytes != int64(len(want)) {
				s.Errorf("task %d: got %d bytes, input %q; want %d bytes, input %q", id, got.InputBytes, data, len(want), want)
			}
		}

		if n := s.number(`SELECT count(*) FROM inputs`); n != 2 {
			s.Errorf("got %d inputs, want 2: an empty input is not stored", n)
		}
	},
	"a row with input and dependencies works, also with recursive triggers": func(s *store) {
		s.exec(`PRAGMA recursive_triggers = 1`)
		s.exec(`INSERT INTO enqueue (args) VALUES (json_array('true'))`)
		s.exec(`INSERT INTO enqueue (args, input, after, lane) VALUES (json_array('cat'), 'in', '[1]', 'l'), (json_array('cat'),
			'in', NULL, 'l')`)
		s.exec(`PRAGMA recursive_triggers = 0`)
		s.now = time.Now()
		w := s.worker()
		claimed := s.claim(w, 9)
		s.wantIDs(ids(claimed), []int64{1, 3})
		s.wantTask(2, jobs.Blocked, "")
		s.finish(w, claimed[0], taskspec.Outcome{})
		s.finish(w, claimed[1], taskspec.Outcome{})
		if got := s.claimOnly(w); got.ID != 2 || got.InputBytes != 2 {
			s.Errorf("got id %v, input bytes %v; want 2, 2", got.ID, got.InputBytes)
		}
	},
	"a trigger of the application can enqueue": func(s *store) {
		s.exec(`CREATE TABLE users (email TEXT)`)
		s.exec(`CREATE TRIGGER welcome AFTER INSERT ON users BEGIN
			INSERT INTO enqueue (job, args, unique_key) VALUES ('email.send', json_object('to', NEW.email), 'welcome:' || NEW.email); END`)
		s.exec(`INSERT INTO users VALUES ('ann@example.com')`)
		s.now = time.Now()
		if got := s.claimOnly(s.worker("email.send")); strings.ReplaceAll(string(got.Args), " ", "") != `{"to":"ann@example.com"}` {
			s.Errorf(`got args %s, want {"to":"ann@example.com"}`, got.Args)
		}
	},
	"a due time of 0 or less does not delay other tasks": func(s *store) {
		s.exec(`INSERT INTO enqueue (run_at) VALUES (0), (0)`)
		s.exec(`INSERT INTO enqueue (run_at, expires_at) VALUES (0, 0)`)
		if w := s.worker(); !s.look(w).IsZero() {
			s.Error("got a next due time, want none: the tasks are due")
		}

		s.insertRow("run_at", int64(-5))
		expiring := s.insert(functionSpec("f", jobs.ExpiresIn(time.Minute)))[0]
		later := s.insert(commandSpec(jobs.In(time.Minute)))[0]
		s.sleep(time.Minute)
		s.wantIDs(ids(s.claim(s.worker(), 9)), []int64{1, 2, 4, later})
		s.wantTask(3, jobs.Cancelled, jobs.ReasonExpired)
		s.wantTask(expiring, jobs.Cancelled, jobs.ReasonExpired)
	},
	"numbers at the limits of their range do not block other tasks": func(s *store) {
		first, last := int64(math.MinInt64), int64(math.MaxInt64)
		if s.Server() != nil { // a server rejects times outside these limits, so that differences of times do not overflow
			first, last = -62167219200000, 253402300799999
		}

		s.insertRow("run_at, options, max_attempts, max_losses, priority, expires_at", int64(1),
			`{"timeout":9223372036854775807,"kill_after":9223372036854775807,"backoff_delay":9223372036854775807,`+
				`"backoff_max":9223372036854775807,"output_limit":9007199254740992}`,
			int64(math.MaxInt32), int64(math.MaxInt32), int64(math.MaxInt32), last)
		s.insertRow("run_at, state", last, "scheduled")
		s.insertRow("run_at", first)
		good := s.insert(commandSpec())[0]
		w := s.worker()
		claimed := s.claim(w, 9)
		s.wantIDs(ids(claimed), []int64{1, 3, good})
		if t := claimed[0]; t.Timeout < 0 || t.KillAfter < 0 || t.Backoff.Delay < 0 || t.Backoff.Max < 0 ||
			t.Timeout < 100*365*24*time.Hour {
			s.Errorf("got %+v; want timeout at least 0, kill after at least 0, backoff delay at least 0, backoff max at "+
				"least 0, timeout at least %v",
				t, 100*365*24*time.Hour)
		}

		for _, t := range claimed {
			s.finish(w, t, failed)
		}

		s.wantTask(1, jobs.Retrying, jobs.ReasonError)
	},
	"rows that would block claims are rejected": func(s *store) {
		for _, row := range []struct {
			columns string
			values  []any
		}{
			{"attempt", []any{1}}, // this row has no max_attempts, so a claim would start attempt 2 of 1
			{"attempt, max_attempts", []any{2, 2}}, {"attempt, max_attempts", []any{-1, 2}}, {"losses, max_losses", []any{5, 3}},
			{"max_attempts", []any{0}},
			{"max_attempts", []any{int64(1 << 31)}}, {"max_losses", []any{int64(1 << 31)}}, {"max_losses", []any{-1}},
			{"priority", []any{int64(1 << 31)}}, {"generation_id", []any{-1}},
			{"generation_id", []any{int64(1<<53 + 1)}}, {"state", []any{"started"}}, {"state", []any{"Pending"}},
			{"state", []any{""}}, {"state", []any{nil}},
			{"state", []any{"running"}}, {"state", []any{"completed"}}, {"state, finished_at", []any{"pending", 1}},
			{"state, lease_expires_at", []any{"pending", 1}},
			{"state, lease_expires_at, worker", []any{"running", 1, 1}}, // max_attempts is missing in this row
			{"state, attempt, max_attempts, lease_expires_at, worker", []any{"running", 1, 1, int64(math.MaxInt64), 1}},
			{"state, finished_at, lease_expires_at", []any{"failed", 1, 1}}, {"waits", []any{1}}, {"id", []any{0}},
			{"id", []any{-1}}, {"id", []any{int64(1<<53 + 1)}},
		} {
			if _, err := s.tryInsertRow(row.columns, row.values...); err == nil {
				s.Errorf("%s = %v: got no error, want one", row.columns, row.values)
			}
		}
	},
	"wrong types, ranges and lengths are rejected": func(s *store) {
		if s.Server() == nil { // a server rounds 1.5, and accepts args that are nested too deeply, so the task fails later
			s.wantRejected(`(run_at) VALUES (1.5)`, "run_at: ")
			deep := strings.Repeat("[", usercode.MaxDepth+1) + strings.Repeat("]", usercode.MaxDepth+1)
			s.wantRejected(`(args) VALUES ('`+deep+`')`, "args: ")
		}
		for _, row := range []string{
			`(priority) VALUES ('high')`, `(priority) VALUES (2147483648)`, `(run_at) VALUES ('now')`,
			`(args) VALUES ('{')`, `(args) VALUES ('')`, `(args) VALUES (x'5b5d')`, `(job) VALUES ('')`, `(queue) VALUES ('')`,
			`(timeout) VALUES (0)`, `(kill_after) VALUES (-1)`, `(backoff) VALUES ('quadratic')`, `(backoff_delay) VALUES (-1)`,
			`(output_limit) VALUES (-1)`,
			`(env) VALUES ('x')`, `(max_losses) VALUES (-1)`,
			`(label) VALUES ('` + strings.Repeat("é", 101) + `')`, `(queue) VALUES ('` + strings.Repeat("q", 101) + `')`,
			`(args) VALUES ('"` + strings.Repeat("x", taskspec.MaxArgs-1) + `"')`,
		} {
			s.wantRejected(row, "")
		}
	},
	"rows that package jobs rejects are rejected with a reason": func(s *store) {
		tenYears := strconv.FormatInt(taskspec.MaxDelay.Milliseconds()+1, 10)
		for row, why := range map[string]string{
			`(job) VALUES ('rm -rf')`: "job: ", `(job) VALUES ('-f')`: "job: ", `(job) VALUES ('a;b')`: "job: ",
			`(job) VALUES ('é')`:                   "job: ",
			`(job) VALUES ('a' || char(0) || ';')`: "job: ", `(job) VALUES ('a' || char(10))`: "job: ",
			`(queue) VALUES ('a/b')`: "queue: ", `(queue) VALUES ('.a')`: "queue: ", `(queue) VALUES ('a b')`: "queue: ",
			`(label) VALUES (char(27) || ']0;x')`: "label: ", `(label) VALUES ('a' || char(0))`: "label: ",
			`(label) VALUES ('a' || char(155))`: "label: ",
			`(lane) VALUES (char(7))`:           "lane: ", `(lane) VALUES ('a' || char(0))`: "lane: ",
			`(after) VALUES ('[99]')`: "after, ", `(after_any) VALUES ('7')`: "after_any: ",
			`(after, run_at) VALUES ('["1"]', 0)`: "after, ",
			`(unique_key) VALUES (char(7))`:       "unique_key: ", `(unique_key) VALUES ('a' || char(0) || 'b')`: "unique_key: ",
			`(run_at) VALUES (253402300800000)`:     ": milliseconds since 1970",
			`(expires_at) VALUES (253402300800000)`: ": milliseconds since 1970",
			`(run_at) VALUES (-1)`:                  "run_at: ", `(expires_at) VALUES (-1)`: "expires_at: ",
			`(created_by) VALUES (char(7))`:       "created_by: ",
			`(timeout) VALUES (` + tenYears + `)`: "timeout: ", `(kill_after) VALUES (` + tenYears + `)`: "kill_after: ",
			`(backoff_delay) VALUES (` + tenYears + `)`: "backoff_delay", `(backoff_max) VALUES (` + tenYears + `)`: "backoff_max",
			`(max_attempts) VALUES (2147483648)`: "max_attempts", `(max_losses) VALUES (2147483648)`: "max_losses",
			`(retry_on) VALUES ('x')`: "retry_on: ", `(retry_on) VALUES ('')`: "retry_on: ",
			`(cwd) VALUES (char(0))`: "cwd: ", `(env_file) VALUES ('/a' || char(0))`: "env_file",
			`(env) VALUES ('[1]')`: "env: ", `(env) VALUES ('null')`: "env: ", `(env) VALUES ('{"A":1}')`: "env: ",
			`(env) VALUES ('{"A":null}')`: "env: ",
			`(env) VALUES ('{"":"x"}')`:   "env: ", `(env) VALUES ('{"A=B":"x"}')`: "env: ", `(env) VALUES ('{"A":"\u0000"}')`: "env: ",
			`(input) VALUES (5)`: "input: ", `(input) VALUES (1.5)`: "input: ", `(input) VALUES (zeroblob(16777217))`: "input: ",
		} {
			s.wantRejected(row, why)
		}

		if n := s.number(`SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM inputs)`); n != 0 {
			s.Errorf("got %d rows of rejected inserts, want none", n)
		}
	},
	"a row cannot choose its id or exhaust the ids": func(s *store) {
		first := s.insert(commandSpec())[0]
		for _, id := range []int64{math.MaxInt64, 1 << 53, 1<<53 + 1, 1 << 52, 0, -1, math.MinInt64} {
			_, _ = s.tryInsertRow("id", id)
		}

		for _, set := range []string{"id = 9223372036854775807", "id = 2", "id = 0", "id = -1"} {
			if _, err := s.raw.ExecContext(s.Context(), s.statement(`UPDATE tasks SET `+set)); err == nil {
				s.Errorf("%s: got no error, want one", set)
			}
		}

		s.exec(`INSERT INTO enqueue (args) VALUES (json_array('true'))`)
		if next := s.insert(commandSpec())[0]; next != first+2 {
			s.Errorf("got next id %d, want %d", next, first+2)
		}
	},
	"an id is not reused": func(s *store) {
		w := s.worker()
		for i := range int64(3) {
			id := s.insert(commandSpec())[0]
			if id != i+1 {
				s.Errorf("got id %d, want %d", id, i+1)
			}
			s.finish(w, s.claimOnly(w), taskspec.Outcome{})
			s.apply(db.Delete(), id)
		}

		s.exec(`INSERT INTO enqueue (args) VALUES (json_array('true'))`)
		s.exec(`DELETE FROM tasks`)
		if id := s.insert(commandSpec())[0]; id != 5 {
			s.Errorf("got id %d, want 5", id)
		}
	},
	"no column value hides a task or blocks other tasks": malformedRows,
	"the reader views show every task": func(s *store) {
		s.insert(commandSpec(), functionSpec("f", jobs.Timeout(time.Second)))
		w := s.worker()
		s.finish(w, s.claimOnly(w), failed)
		if n := s.number(`SELECT count(*) FROM tasks_view`); n != 2 {
			s.Errorf("got %d rows of tasks_view, want 2", n)
		}
		if n := s.number(`SELECT count(*) FROM attempts_view`); n != 1 {
			s.Errorf("got %d rows of attempts_view, want 1", n)
		}
	},
	"rows with dependencies wait for them": func(s *store) {
		w := newOrderStore(s)
		first := w.add()
		s.exec(`INSERT INTO enqueue (job, run_at, after, lane) VALUES ('test', 0, json_array(?), 'l')`, first)
		s.exec(`INSERT INTO enqueue (job, run_at, lane) VALUES ('test', 0, 'l')`)
		s.exec(`INSERT INTO enqueue (job, run_at, after_any) VALUES ('test', 0, json_array(?))`, first)
		s.exec(`INSERT INTO enqueue (job, run_at, after, after_any) VALUES ('test', 0, '[1]', '[2]')`)
		s.exec(`UPDATE dependencies SET open = 0 WHERE task_id = 4`) // a program may write the table itself
		for _, bad := range []string{`[99]`, `7`, `["1"]`, `[6]`, `[1.5]`, `[[1]]`, `x`, `{}`, `[null]`, `[0]`, `[-1]`} {
			if _, err := s.raw.ExecContext(s.Context(), s.statement(`INSERT INTO enqueue (after) VALUES (?)`), bad); err == nil {
				s.Errorf("%s: got no error, want one", bad)
			}
		}

		claimed := w.claim(10)
		s.wantIDs(ids(claimed), []int64{first, 3})
		for _, id := range []int64{2, 4, 5} {
			w.wantState(id, jobs.Blocked)
		}

		w.finish(claimed[0], jobs.Cancel(errBad))
		s.wantTask(2, jobs.Cancelled, jobs.ReasonDependency)
		w.wantState(4, jobs.Pending)
		s.wantTask(5, jobs.Cancelled, jobs.ReasonDependency)
		if on, by, err := s.Dependencies(s.Context(), first, 0); err != nil || len(on) != 0 || len(by) != 3 || by[0].ID != 2 ||
			by[0].State != jobs.Cancelled {
			s.Errorf("got dependencies %v, dependents %v and error %v; want no dependency and three dependents, first task 2, %s",
				on, by, err, jobs.Cancelled)
		}
	},
	"a retry of a row with dependencies changes only its time": func(s *store) {
		w := newOrderStore(s)
		first := w.add()
		for _, lane := range []string{"NULL", "'l'"} {
			for _, due := range []time.Time{s.now, s.now.Add(time.Minute)} {
				s.exec(`INSERT INTO enqueue (job, run_at, after, lane) VALUES ('test', ?, json_array(?), `+lane+`)`,
					s.now.Add(time.Hour).UnixMilli(), first)
				id := s.number(`SELECT max(id) FROM tasks`)
				if m := s.apply(db.Retry(due, s.now, false), id)[0]; m != (jobs.ActionResult{ID: id, State: jobs.Scheduled, Done: true}) {
					s.Errorf("task %d: got %+v, want it done and scheduled", id, m)
				}
				if got := w.wantState(id, jobs.Scheduled); !got.RunAt.Equal(due) {
					s.Errorf("task %d: got run_at %v, want %v", id, got.RunAt, due)
				}
			}
		}

		s.sleep(time.Minute)
		claimed := w.claim(9)
		s.wantIDs(ids(claimed), []int64{first})
		for id := first + 1; id <= first+4; id++ {
			w.wantState(id, jobs.Blocked)
		}
		w.finish(claimed[0], nil)
		s.wantIDs(ids(w.claim(9)), []int64{first + 1, first + 2, first + 3}) // the last one waits for the lane
	},
	"the reset with plain SQL works": func(s *store) {
		id := s.inState(jobs.Failed)
		s.exec(`UPDATE OR IGNORE tasks SET state = 'scheduled', generation_id = generation_id + 1, attempt = 0, losses = 0,
			expires_at = NULL, finished_at = NULL,
			started_at = NULL, outcome = NULL, result = NULL WHERE state = 'failed' AND finished_at > 0`)
		if got := s.claimOnly(s.worker("control.failed")); got.ID != id || got.Attempt != 1 {
			s.Errorf("got id %v, attempt %v; want %v, 1", got.ID, got.Attempt, id)
		}
	},
}

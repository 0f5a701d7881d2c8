package dbtest

import (
	"math"
	"strconv"
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
	"a row has its true state at once, without a worker": func(s *store) {
		due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		s.exec(`INSERT INTO tasks (args, run_at) VALUES (json_array('true'), 0), (json_array('true'), ?)`, due.UnixMilli())
		s.want(1, jobs.Pending, "")
		if got := s.want(2, jobs.Scheduled, ""); got.GenerationID != 1 || !got.RunAt.Equal(due) {
			s.Errorf("%+v", got)
		}
		s.now = time.Now()
		w := s.worker()
		if next := s.look(w); !next.Equal(due) {
			s.Errorf("next due at %v, want %v", next, due)
		}
		s.wantIDs(ids(s.claim(w, 9)), []int64{1})
	},
	"the id comes back, and nothing of an INSERT that was rolled back": func(s *store) {
		tx := must(s.raw.BeginTx(s.Context(), nil))(s)
		var id int64
		if err := tx.QueryRowContext(s.Context(), s.text(`INSERT INTO tasks (job, input) VALUES ('command', 'x') RETURNING id`)).Scan(&id); err != nil || id != 1 {
			s.Error(id, err)
		}
		if err := tx.Rollback(); err != nil {
			s.Error(err)
		}
		if n := s.number(`SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM inputs)`); n != 0 {
			s.Errorf("%d rows are left", n)
		}
	},
	"a unique key that is taken adds nothing, and says so": func(s *store) {
		const add = `INSERT INTO tasks (args, unique_key) VALUES (json_array('true'), 'k')`
		s.exec(add)
		if _, err := s.raw.ExecContext(s.Context(), s.text(add)); err == nil {
			s.Error("two unfinished tasks have one key")
		}
		s.exec(add + ` ON CONFLICT DO NOTHING`)
		if n := s.number(`SELECT count(*) FROM tasks`); n != 1 {
			s.Errorf("%d tasks", n)
		}
	},
	"input is kept aside": func(s *store) {
		s.exec(`INSERT INTO tasks (input) VALUES ('three words here'), (x'00ff'), (''), (NULL)`)
		for i, want := range []string{"three words here", "\x00\xff", "", ""} {
			id := int64(i + 1)
			data := must(s.Input(s.Context(), id))(s)
			if got := s.get(id); string(data) != want || got.InputBytes != int64(len(want)) {
				s.Errorf("task %d: %d bytes, input %q, want %q", id, got.InputBytes, data, want)
			}
		}
		if n := s.number(`SELECT (SELECT count(input) FROM tasks) * 10 + (SELECT count(*) FROM inputs)`); n != 2 {
			s.Errorf("%d: input is in the row, or inputs are empty", n)
		}
	},
	"a row with input that waits for others is as any other, with recursive triggers too": func(s *store) {
		s.exec(`PRAGMA recursive_triggers = 1`)
		s.exec(`INSERT INTO tasks (args) VALUES (json_array('true'))`)
		s.exec(`INSERT INTO tasks (args, input, after, lane) VALUES (json_array('cat'), 'in', '[1]', 'l'), (json_array('cat'), 'in', NULL, 'l')`)
		s.exec(`PRAGMA recursive_triggers = 0`)
		s.now = time.Now()
		w := s.worker()
		claimed := s.claim(w, 9)
		s.wantIDs(ids(claimed), []int64{1, 3})
		s.want(2, jobs.Blocked, "")
		s.finish(w, claimed[0], jobs.Outcome{})
		s.finish(w, claimed[1], jobs.Outcome{})
		if got := s.one(w); got.ID != 2 || got.InputBytes != 2 {
			s.Errorf("%+v", got)
		}
	},
	"an application's trigger may enqueue": func(s *store) {
		s.exec(`CREATE TABLE users (email TEXT)`)
		s.exec(`CREATE TRIGGER welcome AFTER INSERT ON users BEGIN
			INSERT INTO tasks (job, args, unique_key) VALUES ('email.send', json_object('to', NEW.email), 'welcome:' || NEW.email); END`)
		s.exec(`INSERT INTO users VALUES ('ann@example.com')`)
		s.now = time.Now()
		if got := s.one(s.worker("email.send")); strings.ReplaceAll(string(got.Args), " ", "") != `{"to":"ann@example.com"}` {
			s.Errorf("%s", got.Args)
		}
	},
	"a due time of 0, or before it, holds nobody up": func(s *store) {
		s.exec(`INSERT INTO tasks (run_at) VALUES (0), (0)`)
		s.exec(`INSERT INTO tasks (run_at, expires_at) VALUES (0, 0)`)
		if w := s.worker(); !s.look(w).IsZero() {
			s.Error("it is not looked at")
		}
		s.exec(`INSERT INTO tasks (generation_id, run_at) VALUES (1, -5)`) // with a generation of its own, as no program should: it is not checked as others are
		expiring := s.insert(call("f", jobs.ExpiresIn(time.Minute)))[0]
		later := s.insert(task(jobs.In(time.Minute)))[0]
		s.sleep(time.Minute)
		s.wantIDs(ids(s.claim(s.worker(), 9)), []int64{1, 2, 4, later})
		s.want(3, jobs.Cancelled, jobs.ReasonExpired)
		s.want(expiring, jobs.Cancelled, jobs.ReasonExpired)
	},
	"numbers at the ends of their range stop nobody": func(s *store) {
		// With a generation of their own, as no program should: such rows get past the trigger.
		s.exec(`INSERT INTO tasks (generation_id, run_at, timeout, kill_after, backoff_delay, backoff_max, output_limit, max_attempts, max_losses, priority,
			expires_at) VALUES (1, 1, ?1, ?1, ?1, ?1, 9007199254740992, 2147483647, 2147483647, 2147483647, 253402300799999)`, int64(math.MaxInt64))
		s.exec(`INSERT INTO tasks (generation_id, run_at) VALUES (1, 253402300799999)`)
		s.exec(`INSERT INTO tasks (generation_id, run_at) VALUES (1, -62167219200000)`)
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
	"rows that would stop a claim are refused, whoever writes them": func(s *store) {
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
			s.refused(row, "")
			s.refused(strings.Replace(strings.Replace(row, "(", "(generation_id, ", 1), "VALUES (", "VALUES (1, ", 1), "")
		}
	},
	"wrong types, ranges and lengths are refused": func(s *store) {
		if s.Server() == nil { // a server rounds a fraction; what is nested too deeply fails as a task
			s.refused(`(run_at) VALUES (1.5)`, "")
			s.refused(`(args) VALUES ('`+strings.Repeat("[", jobs.MaxDepth+1)+strings.Repeat("]", jobs.MaxDepth+1)+`')`, "")
		}
		for _, row := range []string{
			`(priority) VALUES ('high')`, `(priority) VALUES (2147483648)`, `(run_at) VALUES ('now')`, `(run_at) VALUES (NULL)`,
			`(args) VALUES ('{')`, `(args) VALUES ('')`, `(args) VALUES (x'5b5d')`, `(job) VALUES ('')`, `(job) VALUES (NULL)`, `(queue) VALUES ('')`,
			`(timeout) VALUES (0)`, `(kill_after) VALUES (-1)`, `(backoff) VALUES ('quadratic')`, `(backoff_delay) VALUES (-1)`, `(output_limit) VALUES (-1)`,
			`(env) VALUES ('x')`, `(max_losses) VALUES (-1)`, `(generation_id) VALUES (-1)`,
			`(label) VALUES ('` + strings.Repeat("é", 101) + `')`, `(queue) VALUES ('` + strings.Repeat("q", 101) + `')`,
			`(args) VALUES ('"` + strings.Repeat("x", jobs.MaxArgs-1) + `"')`,
		} {
			s.refused(row, "")
		}
	},
	"what package jobs would refuse is refused, and why": func(s *store) {
		tenYears := strconv.FormatInt(jobs.MaxDelay.Milliseconds()+1, 10)
		for row, why := range map[string]string{
			`(job) VALUES ('rm -rf')`: "job: ", `(job) VALUES ('-f')`: "job: ", `(job) VALUES ('a;b')`: "job: ", `(job) VALUES ('é')`: "job: ",
			`(job) VALUES ('a' || char(0) || ';')`: "job: ", `(job) VALUES ('a' || char(10))`: "job: ",
			`(queue) VALUES ('a/b')`: "queue: ", `(queue) VALUES ('.a')`: "queue: ", `(queue) VALUES ('a b')`: "queue: ",
			`(label) VALUES (char(27) || ']0;x')`: "label: ", `(label) VALUES ('a' || char(0))`: "label: ", `(label) VALUES ('a' || char(155))`: "label: ",
			`(lane) VALUES (char(7))`: "lane: ", `(lane) VALUES ('a' || char(0))`: "lane: ", `(waits, state) VALUES (1, 'blocked')`: "read only",
			`(after) VALUES ('[99]')`: "after, ", `(after_any) VALUES ('7')`: "after_any: ", `(after, run_at) VALUES ('["1"]', 0)`: "after, ",
			`(unique_key) VALUES (char(7))`: "unique_key: ", `(unique_key) VALUES ('a' || char(0) || 'b')`: "unique_key: ",
			`(run_at) VALUES (253402300800000)`: ": milliseconds since 1970", `(expires_at) VALUES (253402300800000)`: ": milliseconds since 1970",
			`(run_at) VALUES (-1)`: "run_at: ", `(expires_at) VALUES (-1)`: "expires_at: ", `(created_by) VALUES (char(7))`: "created_by: ",
			`(timeout) VALUES (` + tenYears + `)`: "timeout, ", `(kill_after) VALUES (` + tenYears + `)`: "timeout, kill_after",
			`(backoff_delay) VALUES (` + tenYears + `)`: "backoff_delay", `(backoff_max) VALUES (` + tenYears + `)`: "backoff_max",
			`(max_attempts) VALUES (2147483648)`: "max_attempts", `(max_losses) VALUES (2147483648)`: "max_losses",
			`(retry_on) VALUES ('x')`: "retry_on: ", `(retry_on) VALUES ('')`: "retry_on: ",
			`(cwd) VALUES (char(0))`: "cwd, ", `(env_file) VALUES ('/a' || char(0))`: "env_file",
			`(env) VALUES ('[1]')`: "env: ", `(env) VALUES ('null')`: "env: ", `(env) VALUES ('{"A":1}')`: "env: ", `(env) VALUES ('{"A":null}')`: "env: ",
			`(env) VALUES ('{"":"x"}')`: "env: ", `(env) VALUES ('{"A=B":"x"}')`: "env: ", `(env) VALUES ('{"A":"\u0000"}')`: "env: ",
			`(input) VALUES (5)`: "input: ", `(input) VALUES (1.5)`: "input: ", `(input) VALUES (zeroblob(16777217))`: "input: ",
			`(state) VALUES ('pending')`: "read only", `(attempt, max_attempts) VALUES (1, 3)`: "read only", `(losses) VALUES (1)`: "read only",
			`(reason) VALUES ('exit')`: "read only", `(path) VALUES ('/bin/true')`: "read only", `(created_at) VALUES (9000000000000)`: "read only",
			`(started_at) VALUES (1)`: "read only", `(schedule, tick) VALUES ('s', 1)`: "read only", `(input_bytes) VALUES (1)`: "read only",
			`(result) VALUES ('1')`: "read only", `(progress) VALUES ('1')`: "read only", `(cancel_requested_at) VALUES (1)`: "read only",
		} {
			s.refused(row, why)
		}
		if n := s.number(`SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM inputs)`); n != 0 {
			s.Errorf("%d rows are left of what was refused", n)
		}
	},
	"ids are the database's to give, and no row takes them from others": func(s *store) {
		first := s.insert(task())[0]
		for _, id := range []string{"9223372036854775807", "9007199254740992", "9007199254740993", "2", "0", "-1", "-2", "-9223372036854775808"} {
			for _, columns := range []string{"id", "generation_id, id"} {
				values := strings.Replace(strings.Replace(columns, "generation_id", "1", 1), "id", id, 1)
				if s.Server() == nil && columns != "id" && id == "2" {
					continue // a generation of its own, as no program should write: it is an id that may be
				}
				s.refused(`(`+columns+`) VALUES (`+values+`)`, map[bool]string{true: "id", false: "non-DEFAULT value"}[s.Server() == nil])
				if s.Server() == nil { // what is passed over takes no id either
					_, _ = s.raw.ExecContext(s.Context(), `INSERT OR IGNORE INTO tasks (`+columns+`) VALUES (`+values+`)`)
					_, _ = s.raw.ExecContext(s.Context(), `INSERT OR REPLACE INTO tasks (`+columns+`) VALUES (`+values+`)`)
				}
			}
		}
		for _, set := range []string{"id = 9223372036854775807", "id = 2", "id = 0", "id = -1"} {
			if _, err := s.raw.ExecContext(s.Context(), s.text(`UPDATE tasks SET `+set)); err == nil {
				s.Errorf("%s was taken", set)
			}
		}
		s.exec(`INSERT INTO tasks (args) VALUES (json_array('true'))`)
		if next := s.insert(task())[0]; next != first+2 {
			s.Errorf("the next id is %d, want %d", next, first+2)
		}
	},
	"what a worker counts with has limits, whoever writes it": func(s *store) {
		s.insert(task())
		s.refused(`(generation_id) VALUES (4503599627370497)`, "generation_id: leave ")
		for column, value := range map[string]string{"generation_id": "9007199254740993", "max_losses": "2147483648", "max_attempts": "2147483648", "run_at": "-62167219200001",
			"created_at": "-9223372036854775808", "updated_at": "253402300800000", "expires_at": "9223372036854775807", "tick": "9223372036854775807",
			"started_at": "9223372036854775807", "duration": "9223372036854775807", "output_bytes": "9223372036854775807", "exit_code": "-9223372036854775808",
			"progress": "'\"" + strings.Repeat("x", 10_000) + "\"'", "retry_on": "'" + strings.Repeat("1,", 501) + "'", "created_by": "'" + strings.Repeat("x", 201) + "'"} {
			s.refused(`(`+column+`) VALUES (`+value+`)`, "")
			if column != "generation_id" {
				s.refused(`(generation_id, `+column+`) VALUES (1, `+value+`)`, "")
			}
			if _, err := s.raw.ExecContext(s.Context(), s.text(`UPDATE tasks SET `+column+` = `+value)); err == nil {
				s.Errorf("an UPDATE was taken: %s = %s", column, value)
			}
		}
	},
	"odd rows that are taken can be listed": func(s *store) {
		s.exec(`INSERT INTO tasks (generation_id, args, env, retry_on, unique_key, created_by, label) VALUES (1, '1', '[1]', 'x', '', '', '')`)
		s.exec(`INSERT INTO tasks (generation_id, args, env) VALUES (1, 'null', '{"A": 1}')`)
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
			if _, err := s.raw.ExecContext(s.Context(), s.text(`INSERT INTO tasks (after) VALUES (?)`), bad); err == nil {
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
		if on, by, err := s.Dependencies(s.Context(), first, 0); err != nil || len(on) != 0 || len(by) != 3 || by[0].ID != 2 || by[0].State != jobs.Cancelled {
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

// refused inserts a row, which must not be taken; the error says why.
func (s *store) refused(row, why string) {
	s.Helper()
	if _, err := s.raw.ExecContext(s.Context(), s.text(`INSERT INTO tasks `+row)); err == nil {
		s.Errorf("taken: %.80s", row)
	} else if s.Server() != nil && (strings.Contains(row, "char(0)") || strings.Contains(row, `\u0000`) || strings.HasPrefix(row, "(input)")) {
		return // the server itself refuses a NUL, and what is no bytes
	} else if !strings.Contains(err.Error(), why) {
		s.Errorf("%.80s: %v, want %q", row, err, why)
	}
}

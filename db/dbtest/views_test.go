package dbtest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
)

// viewRows are statements that add rows to the views. Both engines accept them.
var viewRows = []string{
	`INSERT INTO workers (id, name, host, boot_id, pid, "user", version, slots, jobs, state, lease, started_at, beat_at)
		VALUES ('w-1', 'web1', 'h', 'b', 1, 'ann', 'v', 4, '[]', 'ready', 60000, 1, 2)`,
	`INSERT INTO tasks (generation_id, state, queue, job, args, priority, run_at, max_losses, created_at, updated_at)
		VALUES (1, 'pending', 'default', 'command', '["true"]', 5, 1700000000123, 3, 1700000000000, 1700000000001)`,
	`INSERT INTO tasks (generation_id, state, queue, job, args, label, priority, run_at, expires_at, attempt, max_attempts,
		losses, max_losses, worker, unique_key, lane,
		schedule, tick, parts, created_at, created_by, updated_at, started_at, finished_at, options, outcome, result)
		VALUES (7, 'failed', 'q', 'f', '{}', 'l', -1, 0, 253402300799999, 2, 2, 1, 3, 1, 'k', 'lane', 's', 5, 3, -1, 'ann',
		-1001, 1000, 2001,
		'{"timeout":1500,"kill_after":250,"backoff":"fixed","backoff_delay":0,"backoff_max":1,"retry_on":"75","output_limit":0,` +
		`"leave_children":true,"path":"/p","cwd":"/c","env":{"A":"b"},"env_file":"/e"}',
		'{"reason":"exit","error":"exit status 3","error_line":"no space left","exit_code":3,"signal":9,"duration":1234,` +
		`"output_bytes":7,"output_truncated":true,"children_killed":2,"children_left":1,"usage":[1250,250,9000000,512,1024]}', '1')`,
	`INSERT INTO tasks (generation_id, state, queue, job, priority, run_at, attempt, max_attempts, max_losses, worker,
		created_at, updated_at, started_at, finished_at)
		VALUES (3, 'completed', 'q', 'f', 1, 1, 1, 2, 3, 1, 1, 1, 1700000000000, 1700000000250)`,
	`INSERT INTO tasks (generation_id, state, queue, job, priority, run_at, attempt, max_attempts, max_losses, worker,
		lease_expires_at, created_at, updated_at, started_at)
		VALUES (2, 'running', 'q', 'f', 1, 1, 1, 2, 3, 9, 0, 1, 1, 1)`,
	`INSERT INTO tasks (generation_id, state, queue, job, priority, run_at, max_losses, waits, parts, created_at, updated_at)
		VALUES (1, 'blocked', 'q', 'f', 1, 1, 3, 1, 2, 1, 1)`,
	`INSERT INTO dependencies (task_id, on_id, any_outcome, open) VALUES (5, 1, 0, 1), (5, 2, 0, 0), (5, 3, 1, 1), (5, 4, 0, 1)`,
	`INSERT INTO cancel_requests (task_id, generation_id, requested_at, now, text) VALUES (4, 2, 1700000000999, 0, 'by ann'),
		(2, 1, 1, 0, 'an old one')`,
	`INSERT INTO progress_reports (task_id, generation_id, report) VALUES (4, 2, '{"done":1}'), (3, 1, '2')`,
	`INSERT INTO attempts (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome)
		VALUES (2, 2, 1, 'failed', 0, 1, 1, 11, '{"reason":"lost","error":"its worker was lost"}'), (2, 5, 1, 'failed', 1, 9, 1,
		2, '{"exit_code":1,"duration":5}')`,
	`INSERT INTO schedules (name, cron, zone, overlap, catch_up, catch_up_window, jitter, next_at, last_at, last_task_id,
		created_at, updated_at, task)
		VALUES ('s', '@hourly', 'UTC', 'skip', 'one', 3600000, 1500, 1, 2, 2, 3, 4, '{}')`,
	`INSERT INTO schedules (name, cron, zone, overlap, catch_up, catch_up_window, jitter, paused_at, paused_by, last_task_id,
		kept_state, kept_duration, created_at, updated_at, task)
		VALUES ('t', '@hourly', 'UTC', 'skip', 'one', 1, 0, 1, 'ann', 99, 'failed', 250, 3, 4, '{}')`,
}

// TestReaderViewsAreEqualOnBothEngines compares the columns and values of the
// views that other programs may read.
func TestReaderViewsAreEqualOnBothEngines(t *testing.T) {
	file, server := dbtest.Open(t), openOnServer(t)
	for _, d := range []*db.DB{file, server} {
		raw := dbtest.RawOf(t, d)
		for _, text := range viewRows {
			if _, err := raw.Exec(dbtest.Text(d, text)); err != nil {
				t.Fatalf("got error %v, want none, from the statement\n%s", err, text)
			}
		}
		if _, err := raw.Exec(dbtest.Text(d, `INSERT INTO inputs (task_id, data) VALUES (2, $1)`), []byte("three")); err != nil {
			t.Fatal(err)
		}
	}
	for view, order := range map[string]string{"tasks_view": "id", "attempts_view": "task_id, generation_id",
		"schedules_view": "name"} {
		names, want := rowsOf(t, file, view, order)
		have, got := rowsOf(t, server, view, order)
		if !slices.Equal(names, have) || len(want) == 0 || len(want) != len(got) {
			t.Fatalf("%s: got columns %v and rows %v on a server, want columns %v and rows %v as in a file", view, have, got, names, want)
		}
		for i, row := range want {
			for k, value := range row {
				if got[i][k] != value {
					t.Errorf("%s, row %d, %s: got %s on a server, want %s as in a file", view, i, names[k], got[i][k], value)
				}
			}
		}
	}
}

// rowsOf reads a view. It converts values whose types differ between the
// engines: in SQLite, JSON is text and a boolean is a number.
func rowsOf(t *testing.T, d *db.DB, view, order string) (columns []string, all [][]string) {
	t.Helper()
	rows, err := dbtest.RawOf(t, d).Query(dbtest.Text(d, "SELECT * FROM "+view+" ORDER BY "+order))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if columns, err = rows.Columns(); err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(values))
		for i, value := range values {
			switch value := value.(type) {
			case []byte:
				row[i] = string(value)
			case bool:
				row[i] = map[bool]string{true: "1", false: "0"}[value]
			default:
				row[i] = fmt.Sprint(value)
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return columns, all
}

// TestEnqueueOnPostgreSQLReturnsID checks that an INSERT into the view enqueue
// on a server returns the id of the task. It returns no row if another task
// holds the unique key.
func TestEnqueueOnPostgreSQLReturnsID(t *testing.T) {
	d := openOnServer(t)
	raw := dbtest.RawOf(t, d)
	add := func(values string) (id int64, err error) {
		return id, raw.QueryRow(dbtest.Text(d, `INSERT INTO enqueue `+values+` RETURNING id`)).Scan(&id)
	}
	for want, values := range []string{1: `(args) VALUES ('["true"]')`, 2: `(args, unique_key) VALUES ('["true"]', 'k')`,
		3: `(args) SELECT json_build_array('a', 1)`} {
		if values == "" {
			continue
		}
		if id, err := add(values); err != nil || id != int64(want) {
			t.Errorf("%s: got id %d, error %v; want %d", values, id, err, want)
		}
	}
	if id, err := add(`(unique_key) VALUES ('k')`); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a taken unique key: got id %d, error %v; want %v", id, err, sql.ErrNoRows)
	}
	for _, values := range []string{`(id) VALUES (7)`, `(env) VALUES ('{"A":"\ud800"}')`, `(env) VALUES ('{"A":"\u0000"}')`} {
		if id, err := add(values); err == nil {
			t.Errorf("%s: got id %d, want an error", values, id)
		}
	}
	var n int
	if err := raw.QueryRow(dbtest.Text(d, `SELECT count(*) FROM tasks_view WHERE input_bytes = 0`)).Scan(&n); err != nil || n != 3 {
		t.Errorf("got %d tasks, error %v; want 3", n, err)
	}
}

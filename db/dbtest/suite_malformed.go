package dbtest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// malformedRows lists, claims, ends and deletes rows with any value in any
// column.
func malformedRows(s *store) {
	columns := []string{"run_at", "expires_at", "created_at", "updated_at", "started_at", "tick", "parts", "worker"}
	for i, n := range []int64{math.MinInt64, -1 << 53, -1, 0, 1, 1 << 53, math.MaxInt64} {
		for _, column := range columns {
			if _, err := s.tryInsertRow(column+", label", n, fmt.Sprint(column, i)); err != nil &&
				!strings.Contains(err.Error(), "times: ") {
				s.Errorf("%s = %d: got error %v, want none", column, n,
					err) // only a server returns an error: for times outside of the years 0 to 9999
			}
		}
	}

	for i, text := range []string{"", " ", "x", "{}", "[]", "null", "1", `"x"`, "{", `{"timeout":"x"}`,
		`{"timeout":null,"kill_after":null}`, `{"duration":1e300}`, `{"duration":-1}`,
		`{"exit_code":1e30}`, `{"reason":1}`, `{"env":[1]}`, `{"env":{"A":1}}`, `{"path":{"base64":"!"}}`, `{"backoff":"x"}`,
		`{"new":1}`, `{"keep_for":"x"}`, `{"keep_for":1.5}`, `{"keep_for":1e300}`, `{"keep_for":-1e300}`, `{"keep_for":[1]}`,
		`{"keep_for":9223372036854775807}`, `{"keep_for":"9223372036854775807"}`} {
		for _, column := range []string{"args", "result", "options", "outcome", "unique_key", "lane", "schedule", "created_by"} {
			_, _ = s.tryInsertRow(column+", label", text,
				fmt.Sprint(column, i)) // ignore errors: a server rejects malformed JSON and a second unique key
		}
	}

	n := int(s.number(`SELECT count(*) FROM tasks`))
	if got := len(s.list(jobs.Filter{})); got != n || n < 60 {
		s.Errorf("got %d listed tasks, want %d and at least 60", got, n)
	}

	for _, t := range must(s.List(s.Context(), jobs.Filter{}))(s) {
		if len(t.Args) > 0 && !json.Valid(t.Args) || len(t.Result) > 0 && !json.Valid(t.Result) {
			s.Errorf("got args %s, result %s; want valid JSON", t.Args, t.Result)
		}
	}

	good := s.insert(commandSpec(jobs.Priority(9)))[0]
	w := s.worker()
	s.look(w)
	claimed := s.claim(w, 400)
	if len(claimed) < 60 || claimed[0].ID != good {
		s.Errorf("got %v, want %d first and at least 60", ids(claimed), good)
	}

	var ends []db.Finish
	for i, task := range claimed {
		o := taskspec.Outcome{}
		if i%2 == 1 {
			o.Reason, task.Attempt = jobs.ReasonError, task.MaxAttempts
		}
		ends = append(ends, db.Finish{Task: task, Outcome: s.withTimes(task, o)})
	}
	for i, done := range s.finishAll(w, ends...) {
		if !done.Change.State.Finished() {
			s.Errorf("task %d: got state %s, want a finished one", claimed[i].ID, done.Change.State)
		}
	}

	// what isn't a time is no retention of its own; a file takes any integer
	// for one
	s.sleep(time.Hour)
	s.pruneAll(append(bothBefore(s.now), db.Prune{Kept: true, Before: s.now})...)
	if n := s.number(`SELECT count(*) FROM tasks WHERE finished_at IS NOT NULL
		AND CAST(options ->> 'keep_for' AS text) IS DISTINCT FROM '9223372036854775807'`); n != 0 {
		s.Errorf("got %d tasks after their retention, want none", n)
	}
}

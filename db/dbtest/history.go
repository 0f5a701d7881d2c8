package dbtest

import (
	"database/sql"
	"fmt"
	"net/url"
	"reflect"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// Every test runs beside a trigger that writes each change of a task into a table of its own. Writers are serialised, so its
// order is the order of the changes, and the rules that hold for every change are checked whatever the test is about.

const recorder = `
CREATE TABLE history (seq INTEGER PRIMARY KEY AUTOINCREMENT, id, old_state, state, old_generation, generation, old_owner, owner,
	old_lease, lease, attempt, max_attempts, losses, max_losses);
CREATE TRIGGER history_update AFTER UPDATE ON tasks BEGIN
	INSERT INTO history (id, old_state, state, old_generation, generation, old_owner, owner, old_lease, lease, attempt, max_attempts, losses, max_losses)
	VALUES (NEW.id, OLD.state, NEW.state, OLD.generation_id, NEW.generation_id, OLD.worker, NEW.worker, OLD.lease_expires_at,
		NEW.lease_expires_at, NEW.attempt, NEW.max_attempts, NEW.losses, NEW.max_losses);
END`

// change is a row of the history.
type change struct {
	id                         int64
	oldState, state            jobs.State
	oldGeneration, generation  int64
	oldOwner, owner            sql.NullInt64
	oldLease, lease            sql.NullInt64
	attempt, losses, maxLosses int
	maxAttempts                sql.NullInt64
}

// record opens a connection beside the store's own, and installs the trigger.
func (s *store) record() {
	s.Helper()
	if s.Server() != nil {
		s.raw = rawServer(s.T, s.Address())
		s.exec("SET search_path = " + s.Server().Schema)
		s.exec(serverRecorder)
		s.exec(serverRecorderTrigger)
		return
	}
	s.raw = Raw(s.T, s.Path())
	s.exec(recorder)
}

// rawPatience is how long any other program waits for a lock. On a server it is also that of its own housekeeping, which makes a change of a
// table's triggers wait.
const rawPatience = 10 * time.Second

// Raw opens the file as any other program does.
func Raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	file := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)&_txlock=immediate", rawPatience.Milliseconds())}
	raw, err := sql.Open("sqlite", file.String())
	if err != nil {
		t.Fatal(err)
	}
	raw.SetMaxOpenConns(1)
	t.Cleanup(func() { raw.Close() })
	return raw
}

func (s *store) exec(text string, args ...any) {
	s.Helper()
	if _, err := s.raw.ExecContext(s.Context(), s.text(text), args...); err != nil {
		s.Fatal(err)
	}
}

// number reads one integer.
func (s *store) number(text string) (n int64) {
	s.Helper()
	if err := s.raw.QueryRowContext(s.Context(), s.text(text)).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *store) history() []change {
	s.Helper()
	rows, err := s.raw.QueryContext(s.Context(), `SELECT id, old_state, state, old_generation, generation, old_owner, owner, old_lease, lease,
		attempt, max_attempts, losses, max_losses FROM history ORDER BY seq`)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	var all []change
	for rows.Next() {
		var c change
		if err := rows.Scan(&c.id, &c.oldState, &c.state, &c.oldGeneration, &c.generation, &c.oldOwner, &c.owner, &c.oldLease, &c.lease,
			&c.attempt, &c.maxAttempts, &c.losses, &c.maxLosses); err != nil {
			s.Fatal(err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return all
}

// checkHistory checks the invariants I2 to I5, I7 and I8 of the reliability contract over everything that the test did.
func (s *store) checkHistory() {
	s.Helper()
	for _, problem := range problems(s.history()) {
		s.Error(problem)
	}
	if s.Server() != nil {
		return
	}
	if n := s.number(`SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`); n != 0 {
		s.Errorf("got %d problems of integrity_check, want none", n)
	}
}

func equal(a, b jobs.Task) bool { return reflect.DeepEqual(a, b) }

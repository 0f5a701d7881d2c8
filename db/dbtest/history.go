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

// In every test a trigger writes each change of a task into the table history.
// Writers run one at a time, so the rows are in the order of the changes. After
// each test the suite checks the invariants of these changes.

const recorder = `
CREATE TABLE history (seq INTEGER PRIMARY KEY AUTOINCREMENT, id, old_state, state, old_generation, generation, old_owner, owner,
	old_lease, lease, attempt, max_attempts, losses, max_losses);
CREATE TRIGGER history_update AFTER UPDATE ON tasks BEGIN
	INSERT INTO history (id, old_state, state, old_generation, generation, old_owner, owner, old_lease, lease, attempt,
	max_attempts, losses, max_losses)
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

// record opens a separate connection, and creates the table history and its
// trigger.
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

// rawBusyTimeout is how long a connection of a test that does not use package
// db waits for a lock. On a server, a statement that changes a trigger also
// waits for the autovacuum process.
const rawBusyTimeout = 10 * time.Second

// Raw opens a database file with the SQL driver and without package db, as
// another program does. It doesn't sync what it writes, because a test doesn't
// outlive the machine.
func Raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	file := url.URL{Scheme: "file", OmitHost: true, Path: path,
		RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=synchronous(off)&_txlock=immediate", rawBusyTimeout.Milliseconds())}
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
	if _, err := s.raw.ExecContext(s.Context(), s.statement(text), args...); err != nil {
		s.Fatal(err)
	}
}

// number returns the integer that a query selects.
func (s *store) number(text string) (n int64) {
	s.Helper()
	if err := s.raw.QueryRowContext(s.Context(), s.statement(text)).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *store) history() []change {
	s.Helper()
	rows, err := s.raw.QueryContext(s.Context(),
		`SELECT id, old_state, state, old_generation, generation, old_owner, owner, old_lease, lease,
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

// checkHistory checks all changes of the test against the invariants I2 to I5,
// I7 and I8 of docs/reliability.md. It also checks the list of ended tasks.
func (s *store) checkHistory() {
	s.Helper()
	changes := s.history()
	for _, problem := range violations(changes) {
		s.Error(problem)
	}

	if err := checkEnds(s, changes); err != nil {
		s.Error(err)
	}
	if s.Server() != nil {
		return
	}
	if n := s.number(`SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`); n != 0 {
		s.Errorf("got %d problems of integrity_check, want none", n)
	}
}

func equal(a, b jobs.Task) bool { return reflect.DeepEqual(a, b) }

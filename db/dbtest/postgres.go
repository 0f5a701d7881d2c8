package dbtest

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/pgdriver"
)

// OpenServer opens a new database on the server at address. The address names a
// schema that belongs to the test.
func OpenServer(t testing.TB, address string) *db.DB {
	t.Helper()
	return OpenAt(t, address, db.Options{Create: true, Normal: true, Engine: pgdriver.Engine(), Dir: t.TempDir()})
}

// Empty deletes all rows of the database at the address and reports whether
// that succeeded. After a failed test it deletes nothing and returns false.
func Empty(t testing.TB, address string) bool {
	if t.Failed() {
		return false
	}

	server, err := pgdriver.Engine().Connect(address, rawBusyTimeout)
	if err != nil {
		return false
	}

	raw := sql.OpenDB(server.Write)
	defer raw.Close()

	_, err = raw.Exec("SET search_path = " + server.Schema + `; DROP TABLE IF EXISTS users; DROP FUNCTION IF EXISTS welcome();
		CREATE OR REPLACE TRIGGER history_update AFTER UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION history_update();
		DELETE FROM tasks; DELETE FROM inputs; DELETE FROM attempts; DELETE FROM cancel_requests; DELETE FROM progress_reports;
		DELETE FROM output; DELETE FROM workers; DELETE FROM counters; DELETE FROM counter_hours;
		DELETE FROM totals; DELETE FROM pauses; DELETE FROM dependencies; DELETE FROM limits; DELETE FROM steps;
		DELETE FROM task_pauses; DELETE FROM task_changes; DELETE FROM unique_keys;
		DELETE FROM cursors; DELETE FROM finished; UPDATE finished_seq SET seq = 0;
		DELETE FROM schedules; DELETE FROM history;
		ALTER TABLE tasks ALTER COLUMN id RESTART; ALTER TABLE workers ALTER COLUMN number RESTART;
		ALTER TABLE history ALTER COLUMN seq RESTART`)
	return err == nil
}

// RawOf opens a database with the SQL driver and without package db, as another
// program does.
func RawOf(t testing.TB, d *db.DB) *sql.DB {
	t.Helper()
	if d.Server() != nil {
		return rawServer(t, d.Address())
	}
	return Raw(t, d.Path())
}

// rawServer opens the database on a server with the SQL driver and without
// package db.
func rawServer(t testing.TB, address string) *sql.DB {
	t.Helper()
	server, err := pgdriver.Engine().Connect(address, rawBusyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	raw := sql.OpenDB(server.Write)
	raw.SetMaxOpenConns(1)
	t.Cleanup(func() { raw.Close() })
	return raw
}

// open opens the database of the test a second time.
func (s *store) open(options db.Options) *db.DB {
	s.Helper()
	if s.Server() != nil {
		options.Engine, options.Dir = pgdriver.Engine(), filepath.Dir(s.Dir())
	}
	return OpenAt(s.T, s.Address(), options)
}

// serverSyntax translates the statements of tests from the syntax of SQLite to
// the syntax of PostgreSQL.
var serverSyntax = strings.NewReplacer("json_array('", "dbtest_array('", "json_array(?", "dbtest_array(CAST(? AS bigint)",
	"char(", "dbtest_char(", "x'00ff'", `'\x00ff'`, "UPDATE OR IGNORE", "UPDATE", "DROP TRIGGER history_update",
	"DROP TRIGGER history_update ON tasks",
	"json_object('to', NEW.email)", "json_build_object('to', NEW.email)",
	"zeroblob(16777217)", "decode(repeat('00', 16777217), 'hex')")

const serverRecorder = `
CREATE OR REPLACE FUNCTION dbtest_array(VARIADIC words TEXT[]) RETURNS TEXT LANGUAGE sql AS $$ SELECT to_json(words)::text $$;
CREATE OR REPLACE FUNCTION dbtest_array(number BIGINT) RETURNS TEXT LANGUAGE sql AS $$ SELECT '[' || number || ']' $$;
CREATE OR REPLACE FUNCTION dbtest_char(code INTEGER) RETURNS TEXT LANGUAGE sql AS $$ SELECT chr(code) $$;
CREATE TABLE IF NOT EXISTS history (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id BIGINT, old_state TEXT, state TEXT,
old_generation BIGINT, generation BIGINT,
	old_owner TEXT, owner TEXT, old_lease BIGINT, lease BIGINT, attempt BIGINT, max_attempts BIGINT, losses BIGINT, max_losses BIGINT);
CREATE OR REPLACE FUNCTION history_update() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
	INSERT INTO history (id, old_state, state, old_generation, generation, old_owner, owner, old_lease, lease, attempt,
	max_attempts, losses, max_losses)
	VALUES (NEW.id, OLD.state, NEW.state, OLD.generation_id, NEW.generation_id, OLD.worker, NEW.worker, OLD.lease_expires_at,
		NEW.lease_expires_at, NEW.attempt, NEW.max_attempts, NEW.losses, NEW.max_losses);
	RETURN NULL; END $$;`

const serverRecorderTrigger = `CREATE OR REPLACE TRIGGER history_update AFTER UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION
	history_update()`

// statement returns a statement in the syntax of the database under test.
func (s *store) statement(statement string) string {
	switch {
	case s.Server() == nil:
	case strings.Contains(statement, "$$"):
		return statement
	case strings.HasPrefix(statement, "PRAGMA"):
		return "SELECT 1"
	case strings.HasPrefix(statement, "CREATE TRIGGER welcome"):
		body := statement[strings.Index(statement, "BEGIN"):]
		body = strings.Replace(serverSyntax.Replace(body), "END", "RETURN NULL; END", 1)
		return "CREATE OR REPLACE FUNCTION welcome() RETURNS trigger LANGUAGE plpgsql AS $$ " + body + `$$;
			CREATE TRIGGER welcome AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION welcome()`
	default:
		statement = serverSyntax.Replace(statement)
	}
	return Text(s.DB, statement)
}

package dbtest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/db/schema"
	"example.com/runner/internal/pgdriver"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/jobs"
)

// viewColumns returns the columns of the views for other programs, with their types.
func viewColumns(t *testing.T, raw *sql.DB, schema string) (list string) {
	t.Helper()
	err := raw.QueryRowContext(t.Context(), `SELECT string_agg(table_name || '.' || column_name || ' ' || data_type, E'\n'
		ORDER BY table_name, ordinal_position) FROM information_schema.columns
		WHERE table_schema = $1 AND table_name IN ('tasks_view', 'attempts_view', 'schedules_view', 'enqueue')`, schema).Scan(&list)
	testkit.NoError(t, err)
	return list
}

// TestAnUpgradeOnPostgreSQLKeepsEverything upgrades the tables of version 3. The rows and the privileges on the views must stay. While a
// worker of the older program runs, nothing may change.
func TestAnUpgradeOnPostgreSQLKeepsEverything(t *testing.T) {
	ctx := t.Context()
	text, err := os.ReadFile("testdata/postgres-3.sql")
	testkit.NoError(t, err)
	fresh := dbtest.OpenServer(t, pgkit.Address(t))
	address := pgkit.Address(t)
	server, err := pgdriver.Engine().Connect(address, time.Second)
	testkit.NoError(t, err)
	raw := sql.OpenDB(server.Write)
	t.Cleanup(func() { raw.Close() })
	raw.SetMaxOpenConns(1)
	reader := `"Reader of ` + server.Schema + `"`
	exec := func(text string) {
		t.Helper()
		_, err := raw.ExecContext(ctx, text)
		testkit.NoError(t, err)
	}
	exec("CREATE SCHEMA " + server.Schema + "; SET search_path = " + server.Schema + ";" + string(text))
	exec("CREATE ROLE " + reader + "; GRANT SELECT ON tasks_view TO " + reader + " WITH GRANT OPTION; GRANT INSERT ON enqueue TO PUBLIC")
	exec(fmt.Sprintf(`INSERT INTO workers (id, name, host, boot_id, pid, "user", version, slots, jobs, state, lease, started_at, beat_at)
		VALUES ('a', 'older', '', '', 1, '', '', 1, '[]', 'ready', 60000, 1, %d)`, time.Now().UnixMilli()))
	options := db.Options{Engine: pgdriver.Engine(), Dir: t.TempDir()}
	if _, err := db.Open(ctx, address, options); !errors.Is(err, jobs.ErrBusy) || !strings.Contains(err.Error(), "older runner") {
		t.Errorf(`open beside an older worker: got error %v, want %v with "older runner"`, err, jobs.ErrBusy)
	}
	exec("UPDATE workers SET ended_at = beat_at")
	d, err := db.Open(ctx, address, options)
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, d.Close()) })
	testkit.Equal(t, "version", d.Server().Tables, schema.Version(schema.Postgres))
	testkit.Equal(t, "columns of the views", viewColumns(t, raw, server.Schema), viewColumns(t, raw, fresh.Server().Schema))
	var rows, grants string
	testkit.NoError(t, raw.QueryRowContext(ctx, `SELECT string_agg(id || ' ' || args || ' ' || coalesce(timeout::text, '') || ' ' ||
		input_bytes || ' ' || after::text, ', ' ORDER BY id) FROM tasks_view`).Scan(&rows))
	testkit.Equal(t, "tasks", rows, `1 ["true"]  0 [], 2 ["cat"] 5 3 [1]`)
	testkit.NoError(t, raw.QueryRowContext(ctx, `SELECT concat_ws(' ', has_table_privilege($1, 'tasks_view', 'SELECT WITH GRANT OPTION'),
		has_table_privilege($1, 'enqueue', 'INSERT'), has_table_privilege($1, 'attempts_view', 'SELECT'))`, strings.Trim(reader, `"`)).
		Scan(&grants))
	testkit.Equal(t, "privileges", grants, "t t f")
	exec(`INSERT INTO enqueue (args) VALUES ('["true"]')`)
	list, err := d.List(ctx, jobs.Filter{}, db.Page{})
	testkit.NoError(t, err)
	testkit.Equal(t, "number of tasks", len(list), 3)
}

package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/statementtest"
)

// openFile opens a new database and returns it with the connection of its
// writer. Both are closed when the test ends.
func openFile(t *testing.T) (*File, *sqlx.Conn) {
	t.Helper()
	d, err := New(filepath.Join(t.TempDir(), "test.db"), engine.Options{Create: true, BusyTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}

	conn, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), d.Close()); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return d, conn
}

// TestStatementsOfPackageUseIndexes checks that the statements of this package
// scan only short tables. The tests of package db check the statements of
// package db.
func TestStatementsOfPackageUseIndexes(t *testing.T) {
	d, conn := openFile(t)
	if _, err := conn.ExecContext(t.Context(), CreateSchemaTable); err != nil { // this table exists only in databases of other programs
		t.Fatal(err)
	}

	for text, allow := range map[string][]string{
		readVersion:             {"SCAN pragma_application_id", "SCAN pragma_user_version", "SCAN sqlite_master"},
		selectObjects:           {"SCAN sqlite_schema", "USE TEMP B-TREE FOR ORDER BY"},
		d.sql.Text(selectMain):  {"SCAN pragma_database_list"},
		d.sql.Text(selectOuter): {"SCAN pragma_database_list", "SCAN json_each"},
		selectSchemas:           {"SCAN runner_schema"}, // the table has one row for each prefix of table names, so a scan is cheap
		setSchemaVersion:        nil,
		// This statement runs once, before the tables are created.
		selectUsedNames:                 {"SCAN sqlite_schema", "SCAN json_each", "USE TEMP B-TREE FOR ORDER BY"},
		hasSchemaTable:                  {"SCAN sqlite_schema"},
		selectPages:                     {"SCAN pragma_page_count", "SCAN pragma_freelist_count", "SCAN pragma_auto_vacuum"},
		d.sql.Text(selectUsed):          {"SCAN pragma_page_count", "SCAN pragma_freelist_count", "SCAN pragma_page_size"},
		d.sql.Text(rememberID):          nil,
		d.sql.Text(selectHighestID):     {"SCAN ids"},
		d.sql.Text(engine.SelectAtWork): {"SCAN workers USING INDEX workers_live"},
	} {
		statementtest.Plan{Allow: allow}.Check(t, text, statementtest.Explain(t, d.read, text))
	}
}

package sqlite

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/engine"
)

// TestStatementsOfThePackageUseIndexes allows scans of short tables only. Package db checks its own statements with a dialect of this
// package.
func TestStatementsOfThePackageUseIndexes(t *testing.T) {
	d, err := New(filepath.Join(t.TempDir(), "test.db"), engine.Options{Create: true, BusyTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), CreateMarks); err != nil { // this table is only in databases of other programs
		t.Fatal(err)
	}
	for text, allow := range map[string][]string{
		readVersion:            {"SCAN pragma_application_id", "SCAN pragma_user_version", "SCAN sqlite_master"},
		selectSchema:           {"SCAN sqlite_schema", "USE TEMP B-TREE FOR ORDER BY"},
		d.sql.Text(selectMain): {"SCAN pragma_database_list"},
		selectMarks:            {"SCAN runner_schema"}, // a row for each prefix
		insertMark:             nil,
		// This statement runs once, before the tables are created.
		selectTaken:                     {"SCAN sqlite_schema", "SCAN json_each", "USE TEMP B-TREE FOR ORDER BY"},
		hasMarks:                        {"SCAN sqlite_schema"},
		selectPages:                     {"SCAN pragma_page_count", "SCAN pragma_freelist_count", "SCAN pragma_auto_vacuum"},
		d.sql.Text(rememberID):          nil,
		d.sql.Text(selectHighestID):     {"SCAN ids"},
		d.sql.Text(selectFrozen):        {"SCAN sqlite_schema"},
		d.sql.Text(engine.SelectAtWork): {"SCAN workers USING INDEX workers_live"},
	} {
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = "[]"
		}
		rows, err := conn.QueryxContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			t.Errorf("got error %v, want a plan\n%s", err, text)
			continue
		}
		for rows.Next() {
			var id, parent, unused int
			var line string
			if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
				t.Fatal(err)
			}
			if (strings.HasPrefix(line, "SCAN ") || strings.HasPrefix(line, "USE TEMP B-TREE")) &&
				!slices.ContainsFunc(allow, func(allowed string) bool { return strings.HasPrefix(line, allowed) }) {
				t.Errorf("got the plan %q, want no scan and no sort\n%s", line, text)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Error(err)
		}
	}
}

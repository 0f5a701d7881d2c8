//go:build unix

package test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/codeblock"
)

// TestFileFormatPageNamesEveryTable compares docs/file-format.md with the
// schema of a new file. The diagram and the list on the page must contain
// exactly the tables of the schema.
func TestFileFormatPageNamesEveryTable(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/file-format.md")
	list, err := codeblock.Read("docs/file-format.md")
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d code blocks on the page (%v), want one", len(list), err)
	}
	rows := tableRows(page)
	tables, views := schemaNames(t)
	tables["migration_state"] = true // this table exists only during and after a migration to another database
	tables["runner_schema"] = true   // this table exists only in databases that another program also uses
	for name := range tables {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(list[0].Text) {
			t.Errorf("got a diagram without %s, want every table in it", name)
		}
		if !strings.Contains(rows, "`"+name+"`") {
			t.Errorf("got no row for the table %s, want one for every table", name)
		}
	}
	for name := range views {
		if !strings.Contains(rows, "`"+name+"`") {
			t.Errorf("got no row for the view %s, want one for every view", name)
		}
	}
	for _, match := range regexp.MustCompile(`(?m)[-+] (\w+) {2,}|^ \w.*: {2,}(.*)$`).FindAllStringSubmatch(list[0].Text, -1) {
		for _, name := range strings.Fields(match[1] + match[2]) {
			if !tables[name] {
				t.Errorf("got %s in the diagram, want only tables", name)
			}
		}
	}
	for _, key := range append(optionKeys(), "reason", "error", "exit_code", "signal", "duration", "output_bytes", "output_truncated",
		"children_killed",
		"children_left", "usage") {
		if !strings.Contains(rows, "`"+key+"`") {
			t.Errorf("got no row for the key %s, want one for every key", key)
		}
	}
}

// TestViewsHaveKeysOfRecords compares the columns of the views with the keys of
// the JSON records. docs/sql.md promises that they have the same names.
func TestViewsHaveKeysOfRecords(t *testing.T) {
	t.Parallel()
	pool := newFile(t)
	for view, record := range map[string]struct {
		record ui.Record
		more   []string
	}{
		"tasks_view":     {record: ui.NewTask(jobs.Task{}, time.Now())},
		"attempts_view":  {record: ui.NewAttempt(admin.Attempt{})},
		"schedules_view": {ui.NewSchedule(jobs.Schedule{}, time.Now(), false), []string{"paused_at", "paused_by"}},
	} {
		want := append(keysOf(record.record), record.more...)
		rows, err := pool.QueryContext(t.Context(), `SELECT * FROM `+view+` LIMIT 0`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		got, err := rows.Columns()
		slices.Sort(got)
		slices.Sort(want)
		if err := errors.Join(err, rows.Err()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got the columns %v (%v), want %v", view, got, err, want)
		}
	}
}

// TestSQLPageNamesEveryColumn checks that a table in docs/sql.md has a row for
// each column of the view enqueue.
func TestSQLPageNamesEveryColumn(t *testing.T) {
	t.Parallel()
	described := tableRows(readFile(t, "docs/sql.md"))
	rows, err := newFile(t).QueryContext(t.Context(), `SELECT * FROM enqueue`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || rows.Next() || rows.Err() != nil {
		t.Fatalf("got rows or an error (%v, %v) from the view enqueue, want neither", err, rows.Err())
	}
	for _, column := range columns {
		if !strings.Contains(described, "`"+column+"`") {
			t.Errorf("got no row for the column %s in docs/sql.md, want one for every column", column)
		}
	}
}

// tableRows returns the table rows in a Markdown page.
func tableRows(page string) string {
	var rows strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") {
			rows.WriteString(line)
		}
	}
	return rows.String()
}

// newFile creates a database with runner, closes it, and opens it with plain
// SQLite.
func newFile(t *testing.T) *sql.DB {
	path := filepath.Join(t.TempDir(), "runner.db")
	r, err := runner.Open(t.Context(), path, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pool, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// schemaNames returns the tables and the views of a new file.
func schemaNames(t *testing.T) (tables, views map[string]bool) {
	rows, err := newFile(t).QueryContext(t.Context(),
		`SELECT type, name FROM sqlite_schema WHERE (type = 'table' OR type = 'view') AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	tables, views = map[string]bool{}, map[string]bool{}
	for rows.Next() {
		var kind, name string
		if err := rows.Scan(&kind, &name); err != nil {
			t.Fatal(err)
		}
		map[string]map[string]bool{"table": tables, "view": views}[kind][name] = true
	}
	if err := rows.Err(); err != nil || len(tables) < 10 || len(views) < 4 {
		t.Fatalf("got tables %v, views %v, error %v; want at least 10 tables and 4 views", tables, views, err)
	}
	return tables, views
}

// optionKeys returns the keys under which the database stores options.
func optionKeys() (keys []string) {
	for _, o := range taskspec.Options {
		if o.Stored() {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

//go:build unix

package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/runner/internal/record"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/codeblock"
)

// TestTheFileFormatPageNamesEverything compares docs/file-format.md with the schema of a new file. The diagram and the list name every
// table, and no other table.
func TestTheFileFormatPageNamesEverything(t *testing.T) {
	t.Parallel()
	page := pageText(t, "docs/file-format.md")
	list, err := codeblock.Read("docs/file-format.md")
	if err != nil || len(list) != 1 {
		t.Fatalf("the page has %d code blocks (%v), want one", len(list), err)
	}
	rows := tableRows(page)
	tables, views := schemaNames(t)
	tables["runner_schema"] = true // in a database of another program
	for name := range tables {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(list[0].Text) {
			t.Errorf("the diagram lacks %s", name)
		}
		if !strings.Contains(rows, "`"+name+"`") {
			t.Errorf("no table of the page describes %s", name)
		}
	}
	for name := range views {
		if !strings.Contains(rows, "`"+name+"`") {
			t.Errorf("no table of the page names the view %s", name)
		}
	}
	for _, match := range regexp.MustCompile(`(?m)[-+] (\w+) {2,}|^ \w.*: {2,}(.*)$`).FindAllStringSubmatch(list[0].Text, -1) {
		for _, name := range strings.Fields(match[1] + match[2]) {
			if !tables[name] {
				t.Errorf("the diagram has %s, which is no table", name)
			}
		}
	}
	for _, key := range append(optionKeys(), "reason", "error", "exit_code", "signal", "duration", "output_bytes", "output_truncated") {
		if !strings.Contains(rows, "`"+key+"`") {
			t.Errorf("no table of the page has the key %s", key)
		}
	}
}

// TestTheViewsHaveTheKeysOfTheRecords compares the reader views with the records of --json. docs/sql.md promises that they use the same
// names.
func TestTheViewsHaveTheKeysOfTheRecords(t *testing.T) {
	t.Parallel()
	pool := newFile(t)
	for view, record := range map[string]struct {
		record any
		more   []string
	}{
		"tasks_view":     {record: record.NewTask(jobs.Task{}, noon)},
		"attempts_view":  {record: record.Attempt{}},
		"schedules_view": {record.Schedule{}, []string{"paused_at", "paused_by"}},
	} {
		want := append(keysOf(t, record.record), record.more...)
		rows, err := pool.QueryContext(t.Context(), `SELECT * FROM `+view+` LIMIT 0`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		got, err := rows.Columns()
		slices.Sort(got)
		slices.Sort(want)
		if err := errors.Join(err, rows.Err()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has the columns %v, want %v (%v)", view, got, want, err)
		}
	}
}

// TestTheSQLPageNamesEveryColumn compares the table of docs/sql.md with the view that it describes.
func TestTheSQLPageNamesEveryColumn(t *testing.T) {
	t.Parallel()
	described := tableRows(pageText(t, "docs/sql.md"))
	rows, err := newFile(t).QueryContext(t.Context(), `SELECT * FROM enqueue`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || rows.Next() || rows.Err() != nil {
		t.Fatal("the view enqueue has rows", err, rows.Err())
	}
	for _, column := range columns {
		if !strings.Contains(described, "`"+column+"`") {
			t.Errorf("the table of docs/sql.md lacks %s", column)
		}
	}
}

// tableRows returns the rows of the tables of a page.
func tableRows(page string) string {
	var rows strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") {
			rows.WriteString(line)
		}
	}
	return rows.String()
}

// newFile creates a database and opens it with SQLite alone.
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
		t.Fatalf("got %+v, %+v, %v; want no error, len(tables) >= 10, len(views) >= 4", tables, views, err)
	}
	return tables, views
}

// optionKeys returns the keys of the stored form of options.
func optionKeys() (keys []string) {
	for _, o := range jobs.OptionList() {
		if o.Stored() {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

func pageText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

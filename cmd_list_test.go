package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// TestListPages checks that the pages of a list have no gaps and no duplicates in both directions, and that the list ends after --rows
// tasks.
func TestListPages(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.Normal})
	specs := make([]jobs.Spec, 2500)
	for i := range specs {
		specs[i] = jobs.Command{Argv: []string{"true"}}.With()
	}
	if _, err := r.Add(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rows   int
		oldest bool
		first  int64
		n      int
	}{{0, false, 2500, 2500}, {0, true, 1, 2500}, {1000, false, 2500, 1000}, {2001, true, 1, 2001}, {3000, false, 2500, 2500},
		{7, true, 1, 7}} {
		n, next, step := 0, test.first, int64(-1)
		if test.oldest {
			step = 1
		}
		err := eachTask(t.Context(), r, listOptions{rows: test.rows, oldest: test.oldest}, func(task jobs.Task) error {
			if task.ID != next {
				return fmt.Errorf("task %d, want %d", task.ID, next)
			}
			next += step
			n++
			return nil
		})
		testkit.NoError(t, err)
		testkit.Equal(t, "number of tasks", n, test.n)
	}
}

// TestAnUpgradeIsReported checks that the first command that opens a file of an older schema says that it has upgraded the file.
func TestAnUpgradeIsReported(t *testing.T) {
	dump, err := os.ReadFile("db/testdata/schema-11.sql")
	testkit.NoError(t, err)
	path := filepath.Join(t.TempDir(), "old.db")
	raw, err := sql.Open("sqlite", path)
	testkit.NoError(t, err)
	_, err = raw.ExecContext(t.Context(), "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; "+
		string(dump))
	testkit.NoError(t, err)
	testkit.NoError(t, raw.Close())
	testkit.NoError(t, os.Chmod(path, 0o600))
	upgraded := fmt.Sprintf("upgraded %s from schema 11 to %d; an older runner cannot open it any more\n", path, admin.SchemaVersion())
	for _, want := range []string{upgraded, ""} {
		var out, errs bytes.Buffer
		status := run(t.Context(), []string{"runner", "--db", path, "list"}, strings.NewReader(""), &out, &errs)
		testkit.Equal(t, "status", status, 0)
		testkit.Equal(t, "stderr", errs.String(), want)
	}
}

package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// secondStep adds a migration after the schema: a column, a table that gets a
// row for each task, and another view.
const secondStep = `ALTER TABLE {tasks} ADD COLUMN extra INTEGER;
CREATE TABLE {extra} (
  task_id INTEGER PRIMARY KEY
) STRICT;
INSERT INTO {extra} (task_id) SELECT id FROM {tasks};
DROP VIEW {attempts_view};
CREATE VIEW {attempts_view} AS SELECT task_id FROM {attempts};
`

// withStep makes this program one of the next version until the test ends.
func withStep(t *testing.T, text string) {
	t.Helper()
	schema.Added = addedStep(text)
	t.Cleanup(func() { schema.Added = nil })
}

func addedStep(text string) map[string][]schema.Migration {
	return map[string][]schema.Migration{schema.SQLite: {{Version: SchemaVersion() + 1, Name: "added.sql", SQL: text}}}
}

// before is a file of the schema before the second step. The scenario has
// filled it.
type before struct {
	path    string
	options Options
	rows    map[string]string
}

func fileBefore(t *testing.T, path string, o Options) before {
	t.Helper()
	created := o
	created.Create, created.Normal = true, true
	d, err := Open(t.Context(), path, created)
	testkit.NoError(t, err)
	testkit.NoError(t, newScenario(d).run(false))
	rows := contentOf(t, d, schema.Columns())
	testkit.NoError(t, d.Close())
	return before{path, o, rows}
}

// contentOf returns the rows of runner's tables, each table as one text.
func contentOf(t *testing.T, d *DB, columns map[string]bool) map[string]string {
	t.Helper()
	lists := map[string][]string{}
	for column := range columns {
		table, name, _ := strings.Cut(column, ".")
		lists[table] = append(lists[table], `quote("`+name+`")`)
	}
	rows := map[string]string{}
	for table, list := range lists {
		slices.Sort(list)
		var all string
		testkit.NoError(t, d.read.Get(&all, fmt.Sprintf(`SELECT coalesce(group_concat(row, char(10)), '') FROM (SELECT %s AS row FROM "%s"
			ORDER BY 1)`, strings.Join(list, " || ' ' || "), d.Prefix()+table)))
		rows[table] = all
	}
	return rows
}

// upgraded opens the file with the program of the next version. It checks that
// the upgrade has run once, has kept all rows, and that the database works.
func (b before) upgraded(t *testing.T, columns map[string]bool) {
	t.Helper()
	d, err := Open(t.Context(), b.path, b.options)
	testkit.NoError(t, err)
	defer d.Close()
	testkit.Equal(t, "rows", contentOf(t, d, columns), b.rows)
	var added, tasks int
	testkit.NoError(t, errors.Join(d.read.Get(&added, `SELECT count(*) FROM "`+d.Prefix()+`extra"`),
		d.read.Get(&tasks, `SELECT count(*) FROM "`+d.Prefix()+`tasks"`)))
	testkit.Equal(t, "rows of the new table", added, tasks)
	found, err := d.Integrity(t.Context(), true)
	testkit.NoError(t, err)
	testkit.Equal(t, "damage", len(found), 0)
}

// works runs the scenario once more on the upgraded file.
func (b before) works(t *testing.T) {
	t.Helper()
	d, err := Open(t.Context(), b.path, b.options)
	testkit.NoError(t, err)
	defer d.Close()
	testkit.NoError(t, d.Foreign(t.Context()))
	var last int64
	testkit.NoError(t, d.read.Get(&last, `SELECT max(id) FROM "`+d.Prefix()+`tasks"`))
	added, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, now())
	testkit.NoError(t, err)
	testkit.Equal(t, "id of a new task", added[0].ID, last+1)
	w, err := d.Register(t.Context(), WorkerInfo{ID: NewWorkerID(), Name: "new", Lease: time.Minute, StartedAt: now()},
		[]ClaimJob{{Job: commands.Job, MaxAttempts: 1}})
	testkit.NoError(t, err)
	result, err := w.Cycle(t.Context(), Cycle{Now: now(), Look: true, Claim: Claim{Free: 10, Lease: time.Minute, Idle: true}})
	testkit.NoError(t, err)
	testkit.Equal(t, "the new task is claimed", slices.ContainsFunc(result.Claimed, func(task jobs.Task) bool {
		return task.ID == added[0].ID
	}), true)
}

func TestUpgradeKeepsEverythingAndRunsOnce(t *testing.T) {
	columns := schema.Columns()
	own := fileBefore(t, filepath.Join(t.TempDir(), "own.db"), Options{})
	change(t, own.path, "CREATE TABLE orders (id INTEGER PRIMARY KEY)", "CREATE VIEW waiting AS SELECT id FROM tasks",
		"CREATE TRIGGER ordered AFTER DELETE ON orders BEGIN DELETE FROM tasks WHERE id = OLD.id; END")
	beside := fileBefore(t, otherProgramFile(t, "PRAGMA user_version = 7"), Options{Beside: true, Prefix: "my_"})
	withStep(t, secondStep)
	for name, b := range map[string]before{"a file of its own": own, "beside another program": beside} {
		t.Run(name, func(t *testing.T) {
			readOnly := b.options
			readOnly.ReadOnly = true
			_, err := Open(t.Context(), b.path, readOnly)
			testkit.ErrorIs(t, err, jobs.ErrSchema, "has an older schema")
			d, err := Open(t.Context(), b.path, b.options)
			testkit.NoError(t, err)
			testkit.Equal(t, "version before", d.UpgradedFrom(), SchemaVersion()-1)
			testkit.NoError(t, d.Close())
			for range 2 {
				b.upgraded(t, columns)
			}
			b.works(t)
		})
	}
	newer := SchemaVersion()
	schema.Added = nil
	for _, b := range []before{own, beside} {
		_, err := Open(t.Context(), b.path, b.options)
		testkit.ErrorIs(t, err, jobs.ErrSchema, "newer runner", fmt.Sprintf("its schema is %d, this one knows %d", newer, newer-1))
	}
}

// TestUpgradeWaitsForWorkersOfOlderProgram checks that Open fails while a
// worker of the older program is alive. It would ignore new options of tasks,
// or could not write at all.
func TestUpgradeWaitsForWorkersOfOlderProgram(t *testing.T) {
	b := fileBefore(t, filepath.Join(t.TempDir(), "x.db"), Options{})
	change(t, b.path, fmt.Sprintf("UPDATE workers SET ended_at = NULL, name = 'busy', beat_at = %d WHERE name = 'w'",
		time.Now().UnixMilli()-1000))
	c := start(t, childCommand{Do: "keep", Path: b.path}, nil)
	if r, ok := c.next(); !ok || r.Kind != "" {
		t.Fatalf("got report %+v (found: %v) of the process of the older program, want one without an error", r, ok)
	}
	withStep(t, secondStep)
	_, err := Open(t.Context(), b.path, b.options)
	testkit.ErrorIs(t, err, jobs.ErrBusy, "older runner", "worker busy")
	c.in.Close()
	testkit.NoError(t, c.Wait())
	d, err := Open(t.Context(), b.path, b.options) // no process has the file open now, so the worker is dead
	testkit.NoError(t, err)
	testkit.NoError(t, d.Close())
}

// TestUpgradeKeepsDatabaseFrozen upgrades a file whose tasks were moved to
// another database. It must still reject writes.
func TestUpgradeKeepsDatabaseFrozen(t *testing.T) {
	columns := schema.Columns()
	b := fileBefore(t, filepath.Join(t.TempDir(), "x.db"), Options{})
	want := engine.Frozen{State: engine.Moved, Other: "it's/new.db"}
	d, err := Open(t.Context(), b.path, b.options)
	testkit.NoError(t, err)
	testkit.NoError(t, d.update(t.Context(), full, func(tx *tx) error { return engine.Freeze(querier{tx}, d.engine, want) }))
	testkit.NoError(t, d.Close())
	withStep(t, "UPDATE {tasks} SET label = label;\n"+secondStep)
	b.upgraded(t, columns)
	d, err = Open(t.Context(), b.path, b.options)
	testkit.NoError(t, err)
	defer d.Close()
	got, err := d.frozen(t.Context())
	testkit.NoError(t, err)
	testkit.Equal(t, "frozen", got, want)
	_, err = d.Insert(t.Context(), []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, now())
	testkit.ErrorIs(t, err, jobs.ErrConflict)
}

// TestFailedUpgradeChangesNothing lets a statement of the migration fail.
func TestFailedUpgradeChangesNothing(t *testing.T) {
	b := fileBefore(t, filepath.Join(t.TempDir(), "x.db"), Options{})
	text := testkit.ReadFile(t, b.path)
	withStep(t, secondStep+"INSERT INTO {extra} (task_id) SELECT id FROM {tasks};\n")
	_, err := Open(t.Context(), b.path, b.options)
	testkit.Contains(t, fmt.Sprint(err), "migration added.sql: ")
	schema.Added = nil
	d, err := Open(t.Context(), b.path, b.options)
	testkit.NoError(t, err)
	testkit.Equal(t, "rows", contentOf(t, d, schema.Columns()), b.rows)
	testkit.NoError(t, d.Close())
	testkit.Equal(t, "size of the file", len(testkit.ReadFile(t, b.path)), len(text))
}

// endless is a migration that never ends.
const endless = secondStep + `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
INSERT INTO {extra} (task_id) SELECT i + 1000000 FROM n;
`

// TestUpgradeSurvivesKilledProcess kills a process in the middle of an
// upgrade, with SIGKILL. The next process upgrades the file.
func TestUpgradeSurvivesKilledProcess(t *testing.T) {
	columns := schema.Columns()
	b := fileBefore(t, filepath.Join(t.TempDir(), "x.db"), Options{})
	c := start(t, childCommand{Do: "open", Path: b.path, Step: endless}, nil)
	testkit.Eventually(t, "the migration writes", func() bool {
		info, err := os.Stat(b.path + "-wal")
		return err == nil && info.Size() > 1<<20
	})
	testkit.NoError(t, c.Process.Kill())
	_ = c.Wait()
	raw, err := sqlite.Connect(b.path, "rw")
	testkit.NoError(t, err)
	var version int
	testkit.NoError(t, raw.Get(&version, "PRAGMA user_version"))
	testkit.Equal(t, "version after the kill", version, SchemaVersion())
	testkit.NoError(t, raw.Close())
	withStep(t, secondStep)
	b.upgraded(t, columns)
	b.works(t)
}

package db

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/jobs"
)

func TestForeignRejectsOnlyObjectsOnRunnersTables(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		want       string // text of the problem; empty if there is none
	}{
		"as it was made": {},
		"an application with an outbox": {statements: []string{"CREATE TABLE orders (id INTEGER PRIMARY KEY, text TEXT)",
			"CREATE INDEX orders_text ON orders (text)",
			"CREATE VIEW waiting AS SELECT * FROM tasks WHERE finished_at IS NULL",
			`CREATE TRIGGER ordered AFTER INSERT ON orders BEGIN INSERT INTO enqueue (args) VALUES ('["true"]'); END`, "ANALYZE"}},
		"a trigger on tasks": {[]string{"CREATE TRIGGER evil AFTER UPDATE ON tasks BEGIN UPDATE tasks SET args = '[\"rm\"]'; END"},
			`a trigger "evil" on runner's tasks`},
		"a trigger, in capitals": {[]string{"CREATE TRIGGER evil AFTER INSERT ON TASKS BEGIN DELETE FROM attempts; END"}, `"evil"`},
		"a trigger on workers":   {[]string{"CREATE TRIGGER evil AFTER INSERT ON workers BEGIN DELETE FROM tasks; END"}, `"evil"`},
		"a trigger on a view": {[]string{"CREATE TRIGGER evil INSTEAD OF INSERT ON attempts_view BEGIN DELETE FROM tasks; END"},
			`"evil"`},
		"an index":             {[]string{"CREATE UNIQUE INDEX evil ON tasks (queue)"}, `an index "evil"`},
		"a column":             {[]string{"ALTER TABLE tasks ADD COLUMN evil TEXT AS (job) VIRTUAL"}, "has another tasks"},
		"a trigger is missing": {[]string{"DROP TRIGGER tasks_reopened"}, "lacks runner's tasks_reopened"},
		"a trigger is another": {[]string{"DROP TRIGGER tasks_reopened",
			"CREATE TRIGGER tasks_reopened AFTER INSERT ON tasks BEGIN SELECT 1; END"}, "another tasks_reopened"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			create(t, path)
			change(t, path, c.statements...)
			d, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			err = d.Foreign(t.Context())
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want one with %q (none if empty)", err, c.want)
			}
		})
	}
}

func TestForeignAcceptsAnUpgradedFile(t *testing.T) {
	for _, o := range olds(t) {
		d, err := Open(t.Context(), o.write(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Foreign(t.Context()); err != nil {
			t.Errorf("schema %d: got error %v, want none", o.version, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

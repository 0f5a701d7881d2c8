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
		"a trigger is missing": {[]string{"DROP TRIGGER tasks_reopened"}, "lacks runner's tasks_reopened"},
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

package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/internal/statementtest"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// otherProgramFile makes a database of another program, runs the given
// statements on it, and returns its path.
func otherProgramFile(t *testing.T, texts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	file, err := os.OpenFile(path, os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	change(t, path, append([]string{"CREATE TABLE users (email TEXT)"}, texts...)...)
	return path
}

func TestEverythingInAnotherProgramsFileHasPrefix(t *testing.T) {
	path := otherProgramFile(t)
	d, err := Open(t.Context(), path, Options{Create: true, Beside: true, Prefix: "My1_"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var list []string
	if err := d.read.Select(&list, `SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'
		AND name NOT LIKE 'My1\_%' ESCAPE '\'`); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(list, " "), "users runner_schema"; got != want {
		t.Errorf("objects without the prefix: got %q, want %q", got, want)
	}
}

func TestOpenFindsRunnersTablesInAnotherProgramsFile(t *testing.T) {
	path := otherProgramFile(t, "PRAGMA user_version = 7")
	open := func(options Options) (*DB, error) {
		d, err := Open(t.Context(), path, options)
		if err == nil {
			t.Cleanup(func() { d.Close() })
		}
		return d, err
	}
	for _, options := range []Options{{Create: true}, {Beside: true}, {Beside: true, ReadOnly: true}} {
		if _, err := open(options); !errors.Is(err, jobs.ErrSchema) {
			t.Fatalf("a file without runner's tables, options %+v: got error %v, want %v", options, err, jobs.ErrSchema)
		}
	}
	first, err := open(Options{Create: true, Beside: true, Prefix: "jobs_"})
	if err != nil {
		t.Fatal(err)
	}
	added, err := first.Insert(t.Context(), []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, now())
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range []Options{{}, {ReadOnly: true}, {Beside: true}, {Beside: true, Prefix: "JOBS_"}} {
		d, err := open(options)
		if err != nil {
			t.Fatalf("options %+v: got error %v, want none", options, err)
		}
		if tasks, err := d.List(t.Context(), jobs.Filter{}); err != nil || len(tasks) != 1 || tasks[0].ID != added[0].ID {
			t.Errorf("options %+v: got tasks %v and error %v, want task %d", options, tasks, err, added[0].ID)
		}
	}
	// another library in the same program has tables with a prefix of its own
	// in the file
	if _, err := open(Options{Create: true, Beside: true, Prefix: "other_"}); err != nil {
		t.Fatal(err)
	}
	if _, err := open(Options{}); !errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), "several prefixes") {
		t.Errorf(`two prefixes: got error %v, want %v with "several prefixes"`, err, jobs.ErrSchema)
	}
	change(t, path, "ALTER TABLE other_workers DROP COLUMN pid_namespace")
	if _, err := open(Options{Beside: true, Prefix: "other_"}); !errors.Is(err, jobs.ErrSchema) ||
		!strings.Contains(err.Error(), "workers") {
		t.Errorf(`tables without a column: got error %v, want %v with "workers"`, err, jobs.ErrSchema)
	}
	change(t, path, fmt.Sprintf("UPDATE runner_schema SET version = %d WHERE prefix = 'jobs_'", SchemaVersion()+1))
	if _, err := open(Options{Create: true, Beside: true, Prefix: "jobs_"}); !errors.Is(err, jobs.ErrSchema) ||
		!strings.Contains(err.Error(), "newer runner") {
		t.Errorf(`tables of a newer runner: got error %v, want %v with "newer runner"`, err, jobs.ErrSchema)
	}
}

func TestObjectsOfAnotherProgramAreNotChanged(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		prefix string
		kind   error
		want   string
	}{
		"a table of that name":     {"CREATE TABLE runner_tasks (x)", "", jobs.ErrConflict, "runner_tasks already"},
		"in capitals":              {"CREATE TABLE RUNNER_OUTPUT (x)", "", jobs.ErrConflict, "RUNNER_OUTPUT already"},
		"an index":                 {"CREATE INDEX runner_tasks_due ON users (email)", "", jobs.ErrConflict, "runner_tasks_due already"},
		"another prefix":           {"CREATE TABLE runner_tasks (x)", "jobs_", nil, ""},
		"a mark that is another's": {"CREATE TABLE runner_schema (x)", "", jobs.ErrSchema, "is not runner's"},
		"a mark with a bad prefix": {"CREATE TABLE runner_schema (prefix, version); INSERT INTO runner_schema VALUES ('a b', 1)", "",
			jobs.ErrSchema, "is not runner's"},
		"no name":                     {"", "1a", jobs.ErrInvalid, "prefix"},
		"a name that SQLite reserves": {"", "Sqlite_x", jobs.ErrInvalid, "prefix"},
		"a long name":                 {"", strings.Repeat("x", schema.MaxPrefix+1), jobs.ErrInvalid, "prefix"},
		"a name with a quote":         {"", `x"; DROP TABLE users; --`, jobs.ErrInvalid, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			path := otherProgramFile(t, "PRAGMA journal_mode = WAL", c.text)
			schema := func() (text string) {
				raw, err := sqlite.Connect(path, "rw")
				if err != nil {
					t.Fatal(err)
				}
				defer raw.Close()
				if err := raw.Get(&text, `SELECT group_concat(sql, ';') FROM sqlite_schema`); err != nil {
					t.Fatal(err)
				}
				return text
			}
			before := schema()
			d, err := Open(t.Context(), path, Options{Create: true, Beside: true, Prefix: c.prefix})
			if err == nil {
				d.Close()
			}
			if c.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %v with %q", err, c.kind, c.want)
			}
			if after := schema(); after != before {
				t.Errorf("got the schema\n%s\nwant it unchanged\n%s", after, before)
			}
		})
	}
	own := filepath.Join(t.TempDir(), "own.db")
	create(t, own)
	if _, err := Open(t.Context(), own, Options{Create: true, Beside: true, Prefix: "jobs_"}); !errors.Is(err, jobs.ErrSchema) {
		t.Errorf("a prefix for a database of runner: got error %v, want %v", err, jobs.ErrSchema)
	}
	d, err := Open(t.Context(), own, Options{Create: true, Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Prefix() != "" {
		t.Errorf("a database of runner: got prefix %q, want none", d.Prefix())
	}
}

func TestEachStatementCompilesWithPrefix(t *testing.T) {
	d, err := Open(t.Context(), otherProgramFile(t), Options{Create: true, Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, p := range plans {
		t.Log(name)
		statementtest.Explain(t, d.read, d.sql.Text(p.Statement())) // Explain fails the test if a statement has an unknown name
	}
}

func TestVacuumDoesNothingWithoutAutoVacuum(t *testing.T) {
	d, err := Open(t.Context(), otherProgramFile(t, "CREATE TABLE big (x)",
		"INSERT INTO big SELECT zeroblob(4000) FROM json_each('[1,2,3,4,5,6,7,8,9]') AS a, json_each('[1,2,3,4,5,6,7,8,9]') AS b, "+
			"json_each('[1,2,3,4,5,6,7,8,9]') AS c",
		"DROP TABLE big"), Options{Create: true, Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if more, err := d.Vacuum(t.Context()); err != nil || more {
		t.Errorf("got more work: %t and error %v, want neither", more, err)
	}
}

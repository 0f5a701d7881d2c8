package db

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// TestAConversionKeepsEverything checks that a conversion changes no value, with three exceptions. The dependencies of tasks that plain SQL
// has inserted may differ: the old program returned them only after a worker had read them. Fields that the old program did not have are
// empty. Progress reports of the old program may be any JSON value, so the test compares them in their stored form.
func TestAConversionKeepsEverything(t *testing.T) {
	text, err := os.ReadFile("testdata/schema-11.json")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, o := range olds(t) {
		t.Run(fmt.Sprint(o.version), func(t *testing.T) { o.keptAll(t, want) })
	}
}

// keptAll checks that the upgraded database has the content in the parameter "want", in the form of testdata/schema-11.json.
func (o old) keptAll(t *testing.T, want any) {
	t.Helper()
	d, err := Open(t.Context(), o.write(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, difference := range differences("", contentsOf(t, d), want) {
		if !regexp.MustCompile(`^\[(19|20|21)\]\.Dependencies: |^\[\d+\]\.Task\.Progress|: ` +
			`(|false|0|0001-01-01T00:00:00Z|map\[(\w+:0 ?)+\]) is new$|\.LastStart: .* is new$`).
			MatchString(difference) {
			t.Errorf("got difference %s, want differences in the dependencies of tasks 19 to 21 and empty new fields only", difference)
		}
	}
	for text, want := range map[string]string{ // these queries read stored values that no method returns unchanged
		`SELECT group_concat(on_id || '/' || any_outcome || '/' || open, ' ') FROM (SELECT * FROM dependencies WHERE task_id BETWEEN 20
			AND 22 ORDER BY task_id, on_id)`: "1/0/1 2/1/1 3/0/1 2/0/1 16/1/1",
		`SELECT group_concat(id || '/' || parts, ' ') FROM (SELECT * FROM tasks WHERE id > 14 AND parts IS NOT NULL
			ORDER BY id)`: "20/2 21/2 22/3 23/1",
		`SELECT group_concat(kind || ' ' || name || ' ' || coalesce(running, '') || ' ' || coalesce(rate, '') || ' ' || level, ', ')
			FROM limits`: "job email.send 3  0, lane deploy  10 600000, queue media 2  0",
		`SELECT group_concat(queue || ' ' || paused_by || ' ' || coalesce(reason, ''), ', ')
			FROM pauses`: "-deletion ann an audit, media ann ",
		`SELECT sum(n) || ' ' || (SELECT sum(n) FROM counter_hours) || ' ' || (SELECT sum(n) FROM totals)
			FROM counters`: "9 1234 77",
		`SELECT group_concat(task_id || '/' || generation_id || '/' || now, ' ')
			FROM cancel_requests`: "15/2/1 18/2/0",
		`SELECT group_concat(task_id || '/' || generation_id || ' ' || report, ', ')
			FROM progress_reports`: `15/2 {"done":3,"of":4}, 18/2 "half", 27/2 1`,
		`SELECT group_concat(id) FROM last_ids`:                                                            "33",
		`SELECT group_concat(schedule || task_id) FROM schedule_open`:                                      "full29,nightly6",
		`SELECT count(*) FROM tasks WHERE options = '{}' OR outcome = '{}' OR options IS NULL AND id = 16`: "0",
		`SELECT CAST(options AS BLOB) = CAST('{"path":"' || CAST(X'2F746D702FFF2F78' AS TEXT) ||
			'","cwd":"' || CAST(X'2F746D702FC3' AS TEXT) ||
			'","env_file":"' || CAST(X'EDA08061' AS TEXT) || '"}' AS BLOB) FROM tasks WHERE id = 24`: "1",
	} {
		var got string
		if err := d.read.Get(&got, text); err != nil || got != want {
			t.Errorf("%s: got %s and error %v, want %s", text, got, err, want)
		}
	}
}

// TestAConversionWritesOptionsAsPackageJobsDoes checks that the options of tasks and schedules have the same stored form after a
// conversion as after an insert.
func TestAConversionWritesOptionsAsPackageJobsDoes(t *testing.T) {
	d, err := Open(t.Context(), olds(t)[0].write(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var rows []struct{ Options, Whole text }
	if err := d.read.Select(&rows, `SELECT options, NULL AS whole FROM tasks UNION ALL SELECT task -> 'options', task
		FROM schedules`); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		options := taskspec.DecodeOptions([]byte(r.Options))
		encoded, err := taskspec.EncodeOptions(&options)
		var got, want any
		if len(encoded) > 0 || r.Options != "" {
			err = errors.Join(err, json.Unmarshal([]byte(r.Options), &got), json.Unmarshal(encoded, &want))
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got options %s, want %s as package jobs writes them (error %v)", r.Options, encoded, err)
		}
		if r.Whole == "" {
			continue
		}
		spec, onTick, err := decodeTask(string(r.Whole), nil)
		if err != nil {
			t.Error(err)
		}
		if encoded, err := encodeTask(&spec, onTick); err != nil || encoded != string(r.Whole) {
			t.Errorf("got task %s, want %s as package jobs writes it (error %v)", r.Whole, encoded, err)
		}
	}
}

func TestASchemaThatIsTooOldIsRejected(t *testing.T) {
	o := olds(t)[0]
	path := o.write(t)
	change(t, path, "PRAGMA user_version = 10")
	_, err := Open(t.Context(), path, Options{Create: true})
	if !errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), "older runner") {
		t.Errorf(`got error %v, want %v with "older runner"`, err, jobs.ErrSchema)
	}
	change(t, path, "PRAGMA user_version = 11")
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o.kept(t, d)
}

// TestAnUpgradeWaitsForWorkersOfTheOlderProgram checks that Open fails while a worker of the older program is alive. This worker could not
// write to the converted database, and it would ignore new options of tasks.
func TestAnUpgradeWaitsForWorkersOfTheOlderProgram(t *testing.T) {
	for _, o := range olds(t) {
		t.Run(fmt.Sprint(o.version), o.waitsForWorkers)
	}
}

func (o old) waitsForWorkers(t *testing.T) {
	path := o.write(t)
	change(t, path, fmt.Sprintf("UPDATE workers SET ended_at = NULL, name = 'busy', beat_at = %d WHERE name = 'first'",
		time.Now().UnixMilli()-1000))
	c := start(t, childCommand{Do: "keep", Path: path}, nil)
	if r, ok := c.next(); !ok || r.Kind != "" {
		t.Fatalf("got report %+v (found: %v) of the process of the older program, want one without an error", r, ok)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, jobs.ErrBusy) || !strings.Contains(err.Error(), "older runner") {
		t.Errorf(`got error %v, want %v with "older runner"`, err, jobs.ErrBusy)
	}
	c.in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	d, err := Open(t.Context(), path, Options{}) // no process has the file open now, so Open concludes that the worker is dead
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o.kept(t, d)
}

// TestAConversionKeepsTablesOfAnApplication checks that the views and triggers of an application stay, and that they use the new tables.
func TestAConversionKeepsTablesOfAnApplication(t *testing.T) {
	o := olds(t)[0]
	path := o.write(t)
	change(t, path, "CREATE TABLE orders (id INTEGER PRIMARY KEY)", "CREATE VIEW waiting AS SELECT id FROM tasks WHERE finished_at IS NULL",
		"CREATE VIEW broken AS SELECT x FROM nowhere",
		"CREATE TRIGGER ordered AFTER DELETE ON orders BEGIN DELETE FROM tasks WHERE id = OLD.id; END")
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var waiting int
	if err := d.read.Get(&waiting, "SELECT count(*) FROM waiting"); err != nil || waiting == 0 {
		t.Errorf("the view of the application: got %d waiting tasks and error %v, want at least one", waiting, err)
	}
	if err := d.Foreign(t.Context()); err != nil {
		t.Error(err)
	}
	o.kept(t, d)
}

// freezeOld adds triggers to a file of an earlier schema. They reject writes, like the triggers that a move adds.
func freezeOld(t *testing.T, path, schedules, message string) {
	t.Helper()
	for _, table := range []string{"tasks", schedules, "limits", "pauses"} {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			change(t, path, fmt.Sprintf("CREATE TRIGGER moving_%[1]s_%[2]s BEFORE %[2]s ON %[1]s BEGIN SELECT RAISE(ABORT, '%[3]s'); END",
				table, write, strings.ReplaceAll(message, "'", "''")))
		}
	}
}

// TestAnUpgradeKeepsADatabaseFrozen upgrades a file that was moved to another database. The upgraded file must still reject writes.
func TestAnUpgradeKeepsADatabaseFrozen(t *testing.T) {
	o := olds(t)[1] // a file of schema 12, because the program of schema 11 did not use the table migration_state
	path := o.write(t)
	want := engine.Frozen{State: engine.Moved, Other: "it's/new.db"}
	freezeOld(t, path, "schedules", want.Message())
	change(t, path, "CREATE TABLE migration_state (state TEXT NOT NULL, other TEXT NOT NULL)",
		"INSERT INTO migration_state VALUES ('moved', 'it''s/new.db')")
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o.kept(t, d)
	if got, err := d.frozen(t.Context()); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, now()); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("an insert into a frozen database: got error %v, want %v", err, jobs.ErrConflict)
	}
	err = d.update(t.Context(), full, func(tx *tx) error { return engine.Thaw(querier{tx}, d.engine) })
	if got := schemaOf(t, d); err != nil || !slices.Equal(got, schemaOf(t, openTest(t))) {
		t.Errorf("after the freeze: got error %v or another schema, want that of a new database", err)
	}
}

// TestAFileThatAnEarlierMoveFrozeIsNotUpgraded opens files that an earlier program has moved. That program recorded the move only with
// triggers. The upgrade cannot know whether the tasks run in the other database, so it must change nothing.
func TestAFileThatAnEarlierMoveFrozeIsNotUpgraded(t *testing.T) {
	for i, schedules := range []string{"schedule_rows", "schedules"} {
		o := olds(t)[i]
		t.Run(fmt.Sprint(o.version), func(t *testing.T) {
			path := o.write(t)
			freezeOld(t, path, schedules, "this database was moved to new.db")
			d, err := Open(t.Context(), path, Options{})
			if err == nil {
				d.Close()
			}
			if problem, ok := errors.AsType[*jobs.Error](err); !ok || problem.Kind != jobs.ErrSchema ||
				problem.Code != errcode.UnreleasedSchema {
				t.Fatalf("got error %v, want %v with code %s", err, jobs.ErrSchema, errcode.UnreleasedSchema)
			}
			raw, err := sqlite.Connect(path, "ro")
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			var version, triggers int
			if err := errors.Join(raw.Get(&version, "PRAGMA user_version"), raw.Get(&triggers, `SELECT count(*) FROM sqlite_schema
				WHERE name LIKE 'moving%'`)); err != nil || version != o.version || triggers != 12 {
				t.Errorf("got schema %d, %d triggers of a move and error %v; want schema %d, 12 triggers",
					version, triggers, err, o.version)
			}
		})
	}
}

// TestAConversionOfTablesWithAPrefix converts runner's tables in a database of another program.
func TestAConversionOfTablesWithAPrefix(t *testing.T) {
	o := olds(t)[0]
	dump := strings.NewReplacer("PRAGMA application_id = 1383427698;\n", "", "PRAGMA user_version = 11;\n", "", "VALUES('tasks',33)",
		"VALUES('my_tasks',33),('tasks',77)").Replace(o.dump)
	path := otherProgramFile(t, "CREATE TABLE tasks (id INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO tasks VALUES (77)",
		"CREATE VIEW mine AS SELECT id FROM my_tasks", withPrefix("my_", dump), sqlite.CreateSchemaTable,
		"INSERT INTO runner_schema VALUES ('my_', 11)", "PRAGMA journal_mode = WAL")
	d, err := Open(t.Context(), path, Options{Beside: true, Prefix: "my_"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Foreign(t.Context()); err != nil {
		t.Error(err)
	}
	var left []string
	if err := d.read.Select(&left, `SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'my\_%' ESCAPE '\'
		ORDER BY name`); err != nil || strings.Join(left, " ") != "mine runner_schema tasks users" {
		t.Errorf("objects without the prefix: got %v and error %v, want mine, runner_schema, tasks and users", left, err)
	}
	var version int
	if err := d.read.Get(&version, "SELECT version FROM runner_schema"); err != nil || version != SchemaVersion() {
		t.Errorf("got schema version %d and error %v, want %d", version, err, SchemaVersion())
	}
	o.kept(t, d)
	o.works(t, d)
}

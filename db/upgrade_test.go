package db

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// old is a dump of a database of an earlier schema, testdata/schema-N.sql. Runner itself wrote tasks 1 to 14 of the dump of schema 11: 1, 3
// and 4 completed, 2 failed twice, 5 was running when its worker was killed, 6, 7 and 9 are pending, 8 is scheduled, 10 was cancelled, 11
// holds a lane, 12 waits for the lane, 13 waits for 11, and 14 for 11 and 12. The other tasks were added by hand: 15 completed with a
// result after a cancel request, and its worker was deleted; 16 is retrying and has all options; the claim of 17 is revoked; 18 is running
// and has a cancel request; 19 was killed; 20 to 22 come from plain SQL and have dependencies; 23 has a lane; 24 and 25 have file names
// that are not UTF-8; 26 expired; 27 sleeps between its steps; 28 completed and was reset; 29 belongs to a schedule; 30 to 33 were deleted.
// The dump also has schedules, limits, pauses, counters and totals. testdata/schema-11.json has the content that the program of schema 11
// reads.
type old struct {
	version int
	dump    string
}

func olds(t *testing.T) (list []old) {
	t.Helper()
	names, err := filepath.Glob("testdata/schema-*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		version, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(name))
		if err != nil {
			t.Fatal(err)
		}
		dump, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, old{version, string(dump)})
	}
	slices.SortFunc(list, func(a, b old) int { return a.version - b.version })
	return list
}

// write makes the file from the dump. Then it runs the statements more in a transaction without a commit, like a process that is killed.
func (o old) write(t *testing.T, more ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.db")
	raw, err := sqlite.Connect(path, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.MustExec("PRAGMA auto_vacuum = INCREMENTAL")
	raw.MustExec("PRAGMA journal_mode = WAL")
	raw.MustExec("PRAGMA synchronous = OFF")
	raw.MustExec(o.dump)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if more == nil {
		return path
	}
	conn, err := raw.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range append([]string{"BEGIN IMMEDIATE"}, more...) {
		if _, err := conn.ExecContext(t.Context(), text, sql.Named("prefix", "")); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return path
}

// schemaOf lists the tables, indexes, triggers and views of a database with their SQL.
func schemaOf(t *testing.T, d *DB) (list []string) {
	t.Helper()
	if err := d.read.Select(&list, `SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1`); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEveryEarlierSchemaHasADump(t *testing.T) {
	list := olds(t)
	for i, o := range list {
		if want := schema.ConvertedVersion + i; o.version != want {
			t.Fatalf("there is no dump of schema %d", want)
		}
		if want := fmt.Sprintf("PRAGMA user_version = %d;", o.version); !strings.Contains(o.dump, want) {
			t.Errorf("schema-%d.sql does not say %s", o.version, want)
		}
	}
	if want := SchemaVersion() - schema.ConvertedVersion; len(list) < want {
		t.Errorf("there is no dump of schema %d: CONTRIBUTING.md says how it is made", SchemaVersion()-1)
	}
}

func TestADatabaseOfEveryEarlierSchemaOpensAndWorks(t *testing.T) {
	fresh := schemaOf(t, openTest(t))
	for _, o := range olds(t) {
		t.Run(fmt.Sprint(o.version), func(t *testing.T) {
			d, err := Open(t.Context(), o.write(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if got := schemaOf(t, d); !slices.Equal(got, fresh) {
				t.Errorf("upgraded it is\n%s\na new one is\n%s", strings.Join(got, "\n"), strings.Join(fresh, "\n"))
			}
			o.kept(t, d)
			o.works(t, d)
		})
	}
}

// kept checks that the upgrade has kept the tasks, their attempts and their input.
func (o old) kept(t *testing.T, d *DB) {
	t.Helper()
	want := map[int64]jobs.State{1: jobs.Completed, 2: jobs.Failed, 3: jobs.Completed, 4: jobs.Completed, 5: jobs.Running,
		6: jobs.Pending, 7: jobs.Pending,
		8: jobs.Scheduled, 9: jobs.Pending, 10: jobs.Cancelled, 15: jobs.Completed, 16: jobs.Retrying, 17: jobs.Running, 29: jobs.Blocked}
	for id, state := range want {
		list, err := d.List(t.Context(), jobs.Filter{IDs: []int64{id}}, Page{})
		if err != nil || len(list) != 1 || list[0].State != state {
			t.Errorf("task %d is %+v, want %s: %v", id, list, state, err)
			continue
		}
		attempts, err := d.Attempts(t.Context(), id)
		if n := map[int64]int{1: 1, 2: 2, 3: 1, 4: 1, 15: 1, 16: 2}[id]; err != nil ||
			len(slices.DeleteFunc(attempts, func(a jobs.Attempt) bool { return a.State == jobs.Running })) != n {
			t.Errorf("task %d has attempts %+v, want %d: %v", id, attempts, n, err)
		}
	}
	if input, err := d.Input(t.Context(), 3); err != nil || string(input) != "abc" {
		t.Errorf("input %q, %v", input, err)
	}
}

// works takes over the tasks of the dead worker, claims and finishes everything that is pending, and adds a task.
func (o old) works(t *testing.T, d *DB) {
	t.Helper()
	ctx, at := t.Context(), time.UnixMilli(1795265400000) // a few minutes after the times in the dump
	added, err := d.Insert(ctx, []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, at)
	if err != nil || added[0].ID != 34 { // the highest id was 33, of a deleted task
		t.Fatalf("got %+v, %v; want no error, added[0].ID = 34", added, err)
	}
	w, err := d.Register(ctx, WorkerInfo{Name: "new", Lease: time.Minute, StartedAt: at},
		[]ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}, {Job: "email.send", MaxAttempts: 10}})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := w.Leases(ctx)
	if err != nil || len(leases) != 3 {
		t.Fatalf("got %+v, %v; want no error, len(leases) = 3", leases, err)
	}
	for _, l := range leases {
		if l.Revoked() != (l.ID == 17) || l.WorkerID != "01a1fe0b-9c39-7a9a-9df0-c97336f746a1" {
			t.Errorf("lease %+v", l)
		}
	}
	if leases, err = w.Revoke(ctx, leases); err != nil || len(leases) != 3 {
		t.Fatalf("got %+v, %v; want no error, len(leases) = 3", leases, err)
	}
	if reaped, err := w.Reap(ctx, leases, at); err != nil || len(reaped) != 3 {
		t.Fatalf("got %+v, %v; want no error, len(reaped) = 3", reaped, err)
	}
	o.states(t, d, map[int64]jobs.State{5: jobs.Pending, 17: jobs.Failed, 18: jobs.Cancelled})
	turned, err := w.Cycle(ctx, Cycle{Now: at, Look: true, Claim: Claim{Free: 10, Lease: time.Minute, Idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	var claimed []int64
	finish := make([]Finish, len(turned.Claimed))
	for i, task := range turned.Claimed {
		claimed = append(claimed, task.ID)
		finish[i] = Finish{Task: task, Outcome: lifecycle.Outcome{Started: at, Finished: at}}
	}
	slices.Sort(claimed)
	want := []int64{5, 6, 8, 9, 11, 20} // not 7, because its queue is paused
	want = append(want, added[0].ID)
	if !slices.Equal(claimed, want) {
		t.Errorf("claimed %v, want %v", claimed, want)
	}
	turned, err = w.Cycle(ctx, Cycle{Now: at, Finish: finish})
	if err != nil || slices.ContainsFunc(turned.Finished, func(f Finished) bool { return f.Fenced }) {
		t.Errorf("got %+v, %v; want no error, not ContainsFunc(turned.Finished, func(f Finished) bool { return f.Fenced })", turned, err)
	}
	// The next task of the lane and the task that waited for 11 can start now. Of the tasks from plain SQL, 21 is cancelled because a task
	// that it waits for has failed, and 22 is not due yet.
	o.states(t, d, map[int64]jobs.State{12: jobs.Pending, 13: jobs.Pending, 14: jobs.Blocked, 20: jobs.Completed, 21: jobs.Cancelled,
		22: jobs.Scheduled, 29: jobs.Blocked})
	if n, err := d.Integrity(ctx, true); err != nil || len(n) > 0 {
		t.Errorf("got %v, %v; want no error, len(n) <= 0", n, err)
	}
}

func (o old) states(t *testing.T, d *DB, want map[int64]jobs.State) {
	t.Helper()
	for id, state := range want {
		list, err := d.List(t.Context(), jobs.Filter{IDs: []int64{id}}, Page{})
		if err != nil || len(list) != 1 || list[0].State != state {
			t.Errorf("task %d should be %s: %+v, %v", id, state, list, err)
		}
	}
}

// contentsOf returns the content of a database in the form of testdata/schema-11.json.
func contentsOf(t *testing.T, d *DB) any {
	t.Helper()
	ctx := t.Context()
	var list []any
	tasks, err := d.List(ctx, jobs.Filter{}, Page{Oldest: true})
	for _, task := range tasks {
		attempts, attemptsErr := d.Attempts(ctx, task.ID)
		steps, stepsErr := d.Steps(ctx, task.ID)
		input, inputErr := d.Input(ctx, task.ID)
		on, _, onErr := d.Dependencies(ctx, task.ID, 0)
		var output [][]jobs.Chunk
		for _, a := range attempts {
			chunks, outputErr := d.Output(ctx, ClaimID{ID: task.ID, GenerationID: a.GenerationID}, 0, 100)
			output, err = append(output, chunks), errors.Join(err, outputErr)
		}
		err = errors.Join(err, attemptsErr, stepsErr, inputErr, onErr)
		list = append(list, map[string]any{"Task": task,
			"Attempts": attempts, "Steps": steps, "Input": input, "Dependencies": on, "Output": output})
	}
	schedules, schedulesErr := d.Schedules(ctx)
	for _, s := range schedules {
		list = append(list, map[string]any{"Schedule": s})
	}
	text, textErr := json.Marshal(list)
	var value any
	if err = errors.Join(err, schedulesErr, textErr, json.Unmarshal(text, &value)); err != nil {
		t.Fatal(err)
	}
	return value
}

// differences lists the differences of two JSON values.
func differences(at string, got, want any) (list []string) {
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for key := range want {
			list = append(list, differences(at+"."+key, got[key], want[key])...)
		}
		for key, value := range got {
			if _, known := want[key]; !known && value != nil {
				list = append(list, fmt.Sprintf("%s.%s: %v is new", at, key, value))
			}
		}
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			return []string{fmt.Sprintf("%s: %v, want %v", at, got, want)}
		}
		for i := range want {
			list = append(list, differences(fmt.Sprintf("%s[%d]", at, i), got[i], want[i])...)
		}
	default:
		if got != want {
			list = append(list, fmt.Sprintf("%s: %v, want %v", at, got, want))
		}
	}
	return list
}

// TestAConversionKeepsEverything checks that a conversion changes no value. Only the dependencies of tasks from plain SQL may differ,
// because the older program did not return them before a worker had adopted the tasks.
func TestAConversionKeepsEverything(t *testing.T) {
	text, err := os.ReadFile("testdata/schema-11.json")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), olds(t)[0].write(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, difference := range differences("", contentsOf(t, d), want) {
		if !regexp.MustCompile(`^\[(19|20|21)\]\.Dependencies: `).MatchString(difference) {
			t.Errorf("got %+v, want regexp.MustCompile(`^\\[(19|20|21)\\]\\.Dependencies: `).MatchString(difference)", difference)
		}
	}
	for text, want := range map[string]string{ // stored values that no method returns unchanged
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
		`SELECT group_concat(task_id || '/' || generation_id, ' ')
			FROM progress_reports`: "15/2 18/2 27/2",
		`SELECT group_concat(id) FROM last_ids`:                                                            "33",
		`SELECT group_concat(schedule || task_id) FROM schedule_open`:                                      "full29,nightly6",
		`SELECT count(*) FROM tasks WHERE options = '{}' OR outcome = '{}' OR options IS NULL AND id = 16`: "0",
		`SELECT CAST(options AS BLOB) = CAST('{"path":"' || CAST(X'2F746D702FFF2F78' AS TEXT) ||
			'","cwd":"' || CAST(X'2F746D702FC3' AS TEXT) ||
			'","env_file":"' || CAST(X'EDA08061' AS TEXT) || '"}' AS BLOB) FROM tasks WHERE id = 24`: "1",
	} {
		var got string
		if err := d.read.Get(&got, text); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", text, got, want, err)
		}
	}
}

// TestAConversionWritesOptionsAsPackageJobsDoes checks the stored form of the options of tasks and schedules.
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
		options := jobs.DecodeOptions([]byte(r.Options))
		encoded, err := options.Encode()
		var got, want any
		if len(encoded) > 0 || r.Options != "" {
			err = errors.Join(err, json.Unmarshal([]byte(r.Options), &got), json.Unmarshal(encoded, &want))
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, want %s (%v)", r.Options, encoded, err)
		}
		if r.Whole == "" {
			continue
		}
		spec, err := decodeTask(string(r.Whole), nil)
		if err != nil {
			t.Error(err)
		}
		if encoded, err := encodeTask(&spec); err != nil || encoded != string(r.Whole) {
			t.Errorf("%s, want %s (%v)", r.Whole, encoded, err)
		}
	}
}

func TestASchemaThatIsTooOldIsRefused(t *testing.T) {
	o := olds(t)[0]
	path := o.write(t)
	change(t, path, "PRAGMA user_version = 10")
	_, err := Open(t.Context(), path, Options{Create: true})
	if !errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), "older runner") {
		t.Errorf(`got %v; want Is(err, ErrSchema), Contains(Error(), "older runner")`, err)
	}
	change(t, path, "PRAGMA user_version = 11")
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o.kept(t, d)
}

// TestAConversionWaitsForWorkersOfTheOlderProgram checks that Open fails while a worker of the older program is alive, because that worker
// could not write its results into a converted database.
func TestAConversionWaitsForWorkersOfTheOlderProgram(t *testing.T) {
	o := olds(t)[0]
	path := o.write(t)
	change(t, path, fmt.Sprintf("UPDATE workers SET ended_at = NULL, name = 'busy', beat_at = %d WHERE name = 'first'",
		time.Now().UnixMilli()-1000))
	c := start(t, errand{Do: "keep", Path: path}, nil)
	if r, ok := c.next(); !ok || r.Kind != "" {
		t.Fatalf(`got %+v; want ok, Kind = ""`, r)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, jobs.ErrBusy) || !strings.Contains(err.Error(), "older runner") {
		t.Errorf(`got %v; want Is(err, ErrBusy), Contains(Error(), "older runner")`, err)
	}
	c.in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	d, err := Open(t.Context(), path, Options{}) // no process has the file open now, so the worker counts as killed
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o.kept(t, d)
}

// TestAConversionLeavesAnApplicationAlone checks that the views and triggers of an application stay, and that they use the new tables.
func TestAConversionLeavesAnApplicationAlone(t *testing.T) {
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
		t.Errorf("got %+v, %v; want no error, waiting != 0", waiting, err)
	}
	if err := d.Foreign(t.Context()); err != nil {
		t.Error(err)
	}
	o.kept(t, d)
}

// TestAConversionKeepsADatabaseFrozen checks that a database that was moved to another one stays frozen.
func TestAConversionKeepsADatabaseFrozen(t *testing.T) {
	o := olds(t)[0]
	path := o.write(t)
	want := engine.Frozen{State: engine.Moved, Other: "it's/new.db"}
	for _, table := range []string{"tasks", "schedule_rows", "limits", "pauses"} {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			change(t, path, fmt.Sprintf("CREATE TRIGGER moving_%[1]s_%[2]s BEFORE %[2]s ON %[1]s BEGIN SELECT RAISE(ABORT, '%[3]s'); END",
				table, write,
				strings.ReplaceAll(want.Message(), "'", "''")))
		}
	}
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
		t.Error("it takes tasks:", err)
	}
	err = d.update(t.Context(), full, func(tx *tx) error { return engine.Thaw(querier{tx}, d.engine) })
	if got := schemaOf(t, d); err != nil || !slices.Equal(got, schemaOf(t, openTest(t))) {
		t.Error("thawed it is not as a new one", err)
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
		t.Errorf(`got %+v, %v; want no error, Join(left, " ") = "mine runner_schema tasks users"`, left, err)
	}
	var version int
	if err := d.read.Get(&version, "SELECT version FROM runner_schema"); err != nil || version != SchemaVersion() {
		t.Errorf("got %+v, %v; want no error, version = SchemaVersion()", version, err)
	}
	o.kept(t, d)
	o.works(t, d)
}

// TestALaterMigrationIsRunOnce checks that a migration after the first schema file runs once: in a new database, in a converted one, and in
// one of the schema before.
func TestALaterMigrationIsRunOnce(t *testing.T) {
	o := olds(t)[0]
	before := filepath.Join(t.TempDir(), "before.db")
	create(t, before)
	all := schema.Files
	defer func() { schema.Files = all }()
	more := fstest.MapFS{}
	err := fs.WalkDir(schema.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var text []byte
			text, err = fs.ReadFile(schema.Files, path)
			more[path] = &fstest.MapFile{Data: text}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	last := SchemaVersion()
	more[fmt.Sprintf("%04d_extra.sql", last+1)] = &fstest.MapFile{Data: []byte("CREATE TABLE extra (n INTEGER) STRICT;\nINSERT INTO " +
		"extra SELECT count(*) FROM tasks;\n")}
	schema.Files = more
	if SchemaVersion() != last+1 {
		t.Fatalf("got %+v, want SchemaVersion() = last+1", SchemaVersion())
	}
	var schemas [3][]string
	for i, path := range []string{filepath.Join(t.TempDir(), "new.db"), before, o.write(t)} {
		for range 2 {
			d, err := Open(t.Context(), path, Options{Create: true})
			if err != nil {
				t.Fatal(path, err)
			}
			var n, version int
			if err := errors.Join(d.read.Get(&n, "SELECT n FROM extra"), d.read.Get(&version, "PRAGMA user_version")); err != nil ||
				n != []int{0, 0, 29}[i] || version != last+1 {
				t.Errorf("got %+v, %v, %+v, %v; want no error, n = []int{0, 0, 29}[i], version = last+1", path, n, version, err)
			}
			schemas[i] = schemaOf(t, d)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if !slices.Equal(schemas[0], schemas[1]) || !slices.Equal(schemas[0], schemas[2]) {
		t.Error("they have different schemas")
	}
	schema.Files = all
	if _, err := Open(t.Context(), before, Options{}); !errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), "newer runner") {
		t.Errorf(`got %v; want Is(err, ErrSchema), Contains(Error(), "newer runner")`, err)
	}
}

// TestAnUpgradeThatIsInterruptedLeavesTheOldSchema interrupts an upgrade after each statement. The old schema must stay with all data, and
// the next Open must upgrade it.
func TestAnUpgradeThatIsInterruptedLeavesTheOldSchema(t *testing.T) {
	for _, o := range olds(t) {
		var all []string
		for _, m := range schema.MigrationsFrom(o.version) {
			all = append(all, statements((&sqltext.Dialect{}).Names(m.Text()))...)
		}
		all = append(all, fmt.Sprintf("PRAGMA user_version = %d", SchemaVersion()))
		for done := range len(all) + 1 {
			d, err := Open(t.Context(), o.write(t, append([]string{"SELECT 1"}, all[:done]...)...), Options{})
			if err != nil {
				t.Fatalf("schema %d after %d statements: %v", o.version, done, err)
			}
			o.kept(t, d)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// many adds n tasks to a database of schema 11: copies of its tasks, without the values that must be unique.
const many = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d - 1)
	INSERT INTO tasks SELECT 100 + i, generation_id, job, args, label, queue, state,
	reason, priority, NULL, run_at, expires_at, attempt, max_attempts, losses,
		max_losses, timeout, kill_after, backoff, backoff_delay, backoff_max, retry_on,
		output_limit, path, cwd, env, env_file, input_bytes, worker_id,
		lease_expires_at, cancel_requested_at, cancel_now, cancel_text, created_at,
		created_by, updated_at, started_at, finished_at, duration, result,
		error, exit_code, signal, output_bytes, output_truncated, progress, schedule, tick + i, after, after_any, NULL, waits, input
	FROM n JOIN tasks ON id = 1 + i %% 29 AND generation_id > 0;
	INSERT INTO attempt_rows SELECT tasks.id, 1, 1, 'failed', 'exit', 1, 'unknown' || tasks.id %% 100,
	started_at, started_at + 5, 4, 1, NULL, 'exit status 1', 0, 0
	FROM tasks WHERE tasks.id >= 100 AND started_at IS NOT NULL`

// writeMany makes the file with n more tasks, and returns its path and the total number of tasks.
func (o old) writeMany(t *testing.T, n int) (path string, tasks int) {
	t.Helper()
	path = o.write(t)
	raw, err := sqlite.Connect(path, "rw", "synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.MustExec(fmt.Sprintf(many, n))
	if err := raw.Get(&tasks, "SELECT count(*) FROM tasks"); err != nil || tasks < n*20/29 {
		t.Fatalf("got %+v, %v; want no error, tasks >= n*20/29", tasks, err)
	}
	return path, tasks
}

// TestAConversionThatIsKilled checks that a killed conversion leaves a complete database of the old schema or of the new one.
func TestAConversionThatIsKilled(t *testing.T) {
	o := olds(t)[0]
	image, tasks := o.writeMany(t, 10_000)
	text := contents(t, image)
	var took time.Duration
	left := map[int]int{} // number of databases by the version of their schema
	for i := range 10 {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // measure an undisturbed conversion first
			began := time.Now()
			if r := send(t, errand{Do: "open", Path: path}, nil); r.Kind != "" {
				t.Fatalf(`got %+v, want Kind = ""`, r)
			}
			took = time.Since(began)
		} else {
			c := start(t, errand{Do: "open", Path: path}, nil)
			time.Sleep(took * time.Duration(i) / 9)
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		raw, err := sqlite.Connect(path, "rw")
		if err != nil {
			t.Fatal(err)
		}
		var version, n int
		query := map[int]string{o.version: "SELECT count(worker_id) * 0 + count(*) FROM tasks WHERE NOT EXISTS (SELECT 1 FROM " +
			"attempt_rows WHERE task_id = -1)",
			SchemaVersion(): "SELECT count(worker) * 0 + count(*) FROM tasks WHERE NOT EXISTS (SELECT 1 FROM attempts WHERE task_id = -1)"}
		if err := raw.Get(&version, "PRAGMA user_version"); err != nil {
			t.Fatal(err)
		}
		if err := raw.Get(&n, query[version]); err != nil || n != tasks {
			t.Errorf("after %d/9: schema %d has %d tasks of %d: %v", i, version, n, tasks, err)
		}
		left[version]++
		raw.Close()
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := d.Count(t.Context(), jobs.Filter{}); err != nil || n != tasks {
			t.Errorf("got %v, %v; want no error, n = tasks", n, err)
		}
		if found, err := d.Integrity(t.Context(), true); err != nil || len(found) > 0 {
			t.Errorf("got %+v, %v; want no error, len(found) <= 0", found, err)
		}
		o.kept(t, d)
		_ = d.Close()
	}
	t.Log(took, left)
	if left[o.version] == 0 {
		t.Error("none was killed before the end")
	}
}

// TestAConversionOfManyTasks converts 103,000 tasks with as many attempts, 27 MB in all. That takes 0.9 to 1.9 s on two cores with a load
// of 4 to 7 from other work.
func TestAConversionOfManyTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand tasks")
	}
	o := olds(t)[0]
	path, tasks := o.writeMany(t, 115_000)
	size := len(contents(t, path))
	began := time.Now()
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	took := time.Since(began)
	var after int64
	if err := d.read.Get(&after, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, "+
		"pragma_page_size"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tasks in %v; %d bytes before, %d after", tasks, took, size, after)
	if n, err := d.Count(t.Context(), jobs.Filter{}); err != nil || n != tasks || n < 100_000 {
		t.Errorf("got %v, %v; want no error, n = tasks, n >= 100_000", n, err)
	}
	if found, err := d.Integrity(t.Context(), true); err != nil || len(found) > 0 {
		t.Errorf("got %+v, %v; want no error, len(found) <= 0", found, err)
	}
	o.kept(t, d)
}

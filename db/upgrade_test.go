package db

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/schema"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// old is a dump of a database of an earlier schema, testdata/schema-N.sql. In the dump of schema 11, runner itself wrote tasks 1 to 14:
// 1, 3 and 4 completed, 2 failed twice, 5 was running when its worker was killed, 6, 7 and 9 are pending, 8 is scheduled, 10 was
// cancelled, 11 holds a lane, 12 waits for the lane, 13 waits for 11, and 14 waits for 11 and 12. Developers added the other tasks by
// hand: 15 completed with a result after a cancel request, and its worker was deleted; 16 is retrying and has all options; the claim of
// 17 is revoked; 18 is running and has a cancel request; 19 was killed; 20 to 22 come from plain SQL and have dependencies; 23 has a
// lane; 24 and 25 have file names that are not UTF-8; 26 expired; 27 sleeps between its steps; 28 completed and was reset; 29 belongs to
// a schedule; 30 to 33 were deleted. The dump also has schedules, limits, pauses, counters and totals. testdata/schema-11.json has the
// content that the program of schema 11 reads.
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

// write creates a file from the dump. Then it begins a transaction, runs the statements in the parameter "more", and closes the file
// without a commit, like a process that is killed.
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
			t.Fatalf("got error %v, want none, from the statement\n%s", err, text)
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
			t.Fatalf("got no dump of schema %d, want one", want)
		}
		if want := fmt.Sprintf("PRAGMA user_version = %d;", o.version); !strings.Contains(o.dump, want) {
			t.Errorf("schema-%d.sql: got no text %q, want it", o.version, want)
		}
	}
	if want := SchemaVersion() - schema.ConvertedVersion; len(list) < want {
		t.Errorf("got no dump of schema %d, want one; CONTRIBUTING.md says how to make it", SchemaVersion()-1)
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
				t.Errorf("got upgraded schema\n%s\nwant, as in a new file,\n%s", strings.Join(got, "\n"), strings.Join(fresh, "\n"))
			}
			o.kept(t, d)
			o.works(t, d)
		})
	}
}

// The method "kept" checks that the upgrade has kept the tasks, their attempts and their input.
func (o old) kept(t *testing.T, d *DB) {
	t.Helper()
	want := map[int64]jobs.State{1: jobs.Completed, 2: jobs.Failed, 3: jobs.Completed, 4: jobs.Completed, 5: jobs.Running,
		6: jobs.Pending, 7: jobs.Pending,
		8: jobs.Scheduled, 9: jobs.Pending, 10: jobs.Cancelled, 15: jobs.Completed, 16: jobs.Retrying, 17: jobs.Running, 29: jobs.Blocked}
	for id, state := range want {
		list, err := d.List(t.Context(), jobs.Filter{IDs: []int64{id}}, Page{})
		if err != nil || len(list) != 1 || list[0].State != state {
			t.Errorf("task %d: got %+v and error %v, want state %s", id, list, err, state)
			continue
		}
		attempts, err := d.Attempts(t.Context(), id)
		if n := map[int64]int{1: 1, 2: 2, 3: 1, 4: 1, 15: 1, 16: 2}[id]; err != nil ||
			len(slices.DeleteFunc(attempts, func(a jobs.Attempt) bool { return a.State == jobs.Running })) != n {
			t.Errorf("task %d: got attempts %+v and error %v, want %d", id, attempts, err, n)
		}
	}
	if input, err := d.Input(t.Context(), 3); err != nil || string(input) != "abc" {
		t.Errorf("got input %q and error %v, want abc", input, err)
	}
}

// The method "works" adds a task and registers a worker. This worker takes over the tasks of the dead worker, and claims and finishes all
// pending tasks.
func (o old) works(t *testing.T, d *DB) {
	t.Helper()
	ctx, at := t.Context(), time.UnixMilli(1795265400000) // the time "at" is a few minutes after the times in the dump
	added, err := d.Insert(ctx, []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, at)
	if err != nil || added[0].ID != 34 { // a deleted task had the id 33, and ids are never used again
		t.Fatalf("insert: got %+v and error %v, want id 34", added, err)
	}
	w, err := d.Register(ctx, WorkerInfo{Name: "new", Lease: time.Minute, StartedAt: at},
		[]ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}, {Job: "email.send", MaxAttempts: 10}})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := w.Leases(ctx)
	if err != nil || len(leases) != 3 {
		t.Fatalf("got leases %+v and error %v, want 3 leases", leases, err)
	}
	for _, l := range leases {
		if l.Revoked() != (l.ID == 17) || l.WorkerID != "01a1fe0b-9c39-7a9a-9df0-c97336f746a1" {
			t.Errorf("got lease %+v, want one of the old worker, revoked only for task 17", l)
		}
	}
	if leases, err = w.Revoke(ctx, leases); err != nil || len(leases) != 3 {
		t.Fatalf("got leases %+v and error %v, want 3 leases", leases, err)
	}
	if reaped, err := w.Reap(ctx, leases, at); err != nil || len(reaped) != 3 {
		t.Fatalf("got reaped tasks %+v and error %v, want 3 tasks", reaped, err)
	}
	o.states(t, d, map[int64]jobs.State{5: jobs.Pending, 17: jobs.Failed, 18: jobs.Cancelled})
	result, err := w.Cycle(ctx, Cycle{Now: at, Look: true, Claim: Claim{Free: 10, Lease: time.Minute, Idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	var claimed []int64
	finish := make([]Finish, len(result.Claimed))
	for i, task := range result.Claimed {
		claimed = append(claimed, task.ID)
		finish[i] = Finish{Task: task, Outcome: lifecycle.Outcome{Started: at, Finished: at}}
	}
	slices.Sort(claimed)
	want := []int64{5, 6, 8, 9, 11, 20} // task 7 is missing, because its queue is paused
	want = append(want, added[0].ID)
	if !slices.Equal(claimed, want) {
		t.Errorf("got claims %v, want %v", claimed, want)
	}
	result, err = w.Cycle(ctx, Cycle{Now: at, Finish: finish})
	if err != nil || slices.ContainsFunc(result.Finished, func(f Finished) bool { return f.Fenced }) {
		t.Errorf("got results %+v and error %v, want all accepted", result.Finished, err)
	}
	// The next task of the lane (12) and the task that waited for task 11 (13) can start now. Two tasks from plain SQL cannot start: 21
	// is cancelled because a task that it waits for has failed, and 22 is not due yet.
	o.states(t, d, map[int64]jobs.State{12: jobs.Pending, 13: jobs.Pending, 14: jobs.Blocked, 20: jobs.Completed, 21: jobs.Cancelled,
		22: jobs.Scheduled, 29: jobs.Blocked})
	if n, err := d.Integrity(ctx, true); err != nil || len(n) > 0 {
		t.Errorf("integrity_check: got problems %v and error %v, want neither", n, err)
	}
}

func (o old) states(t *testing.T, d *DB, want map[int64]jobs.State) {
	t.Helper()
	for id, state := range want {
		list, err := d.List(t.Context(), jobs.Filter{IDs: []int64{id}}, Page{})
		if err != nil || len(list) != 1 || list[0].State != state {
			t.Errorf("task %d: got %+v and error %v, want state %s", id, list, err, state)
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

// TestALaterMigrationIsRunOnce checks that a migration after the first schema file runs once in each of three databases: a new one, a
// converted one, and one of the previous schema.
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
		t.Fatalf("got schema version %d, want %d", SchemaVersion(), last+1)
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
				t.Errorf("%s: got %d tasks, schema %d and error %v; want %d tasks, schema %d",
					path, n, version, err, []int{0, 0, 29}[i], last+1)
			}
			schemas[i] = schemaOf(t, d)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if !slices.Equal(schemas[0], schemas[1]) || !slices.Equal(schemas[0], schemas[2]) {
		t.Errorf("got different schemas %v, want the same three times", schemas)
	}
	schema.Files = all
	if _, err := Open(t.Context(), before, Options{}); !errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), "newer runner") {
		t.Errorf(`got error %v, want %v with "newer runner"`, err, jobs.ErrSchema)
	}
}

package db

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// old is a database as an earlier schema left it: testdata/schema-N.sql, a dump. Its rows were written by runner itself: tasks 1, 3 and 4
// completed, 2 failed twice, 5 ran when its worker was killed, 6, 7 and 9 are pending, 8 is scheduled, 10 was cancelled. From schema 6 on
// 11 has a lane, 12 waits for it, 13 and 14 wait for those.
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

// write makes the file, and after it runs more statements in a transaction that is never committed, as a process does that is killed.
func (o old) write(t *testing.T, more ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.db")
	raw, err := connect(path, "rwc", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.MustExec("PRAGMA auto_vacuum = INCREMENTAL")
	raw.MustExec("PRAGMA journal_mode = WAL")
	raw.MustExec("PRAGMA synchronous = OFF")
	raw.MustExec(strings.Replace(o.dump, "INSERT INTO \"sqlite_sequence\"", "DELETE FROM sqlite_sequence; INSERT INTO \"sqlite_sequence\"", 1))
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
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return path
}

// schemaOf is what the tables, indexes, triggers and views of a database are.
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
		if o.version != i+1 {
			t.Fatalf("there is no dump of schema %d", i+1)
		}
		if want := fmt.Sprintf("PRAGMA user_version = %d;", o.version); !strings.Contains(o.dump, want) {
			t.Errorf("schema-%d.sql does not say %s", o.version, want)
		}
	}
	if want := SchemaVersion() - 1; len(list) < want {
		t.Errorf("there is no dump of schema %d: CONTRIBUTING.md says how it is made", want)
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

// kept checks that nothing was lost on the way.
func (o old) kept(t *testing.T, d *DB) {
	t.Helper()
	want := map[int64]jobs.State{1: jobs.Completed, 2: jobs.Failed, 3: jobs.Completed, 4: jobs.Completed, 5: jobs.Running, 6: jobs.Pending, 7: jobs.Pending,
		8: jobs.Scheduled, 9: jobs.Pending, 10: jobs.Cancelled}
	for id, state := range want {
		list, err := d.List(t.Context(), jobs.Filter{IDs: []int64{id}}, Page{})
		if err != nil || len(list) != 1 || list[0].State != state {
			t.Errorf("task %d is %+v, want %s: %v", id, list, state, err)
			continue
		}
		attempts, err := d.Attempts(t.Context(), id)
		if n := map[int64]int{1: 1, 2: 2, 3: 1, 4: 1}[id]; err != nil || len(slices.DeleteFunc(attempts, func(a jobs.Attempt) bool { return a.State == jobs.Running })) != n {
			t.Errorf("task %d has attempts %+v, want %d: %v", id, attempts, n, err)
		}
	}
	if input, err := d.Input(t.Context(), 3); err != nil || string(input) != "abc" {
		t.Errorf("input %q, %v", input, err)
	}
}

// works takes over the task of the dead worker, claims and finishes everything that is pending, and adds a task.
func (o old) works(t *testing.T, d *DB) {
	t.Helper()
	ctx, at := t.Context(), time.UnixMilli(1795265400000) // a few minutes later, by its own clock
	added, err := d.Insert(ctx, []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, at)
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.Register(ctx, WorkerInfo{Name: "new", Lease: time.Minute, StartedAt: at}, []ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}, {Job: "email.send", MaxAttempts: 10}})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := w.Leases(ctx)
	if err != nil || len(leases) != 1 || leases[0].ID != 5 {
		t.Fatal(leases, err)
	}
	if leases, err = w.Revoke(ctx, leases); err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	if reaped, err := w.Reap(ctx, leases, at); err != nil || len(reaped) != 1 {
		t.Fatal(reaped, err)
	}
	turned, err := w.Turn(ctx, Turn{Now: at, Look: true, Claim: Claim{Free: 10, Lease: time.Minute, Idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	var claimed []int64
	finish := make([]Finish, len(turned.Claimed))
	for i, task := range turned.Claimed {
		claimed = append(claimed, task.ID)
		finish[i] = Finish{Task: task, Outcome: jobs.Outcome{Started: at, Finished: at}}
	}
	slices.Sort(claimed)
	want := []int64{5, 6, 8, 9}
	switch { // the queue of 7 is paused from schema 4 on
	case o.version < 4:
		want = []int64{5, 6, 7, 8, 9}
	case o.version >= 6:
		want = []int64{5, 6, 8, 9, 11}
	}
	want = append(want, added[0].ID)
	if !slices.Equal(claimed, want) {
		t.Errorf("claimed %v, want %v", claimed, want)
	}
	turned, err = w.Turn(ctx, Turn{Now: at, Finish: finish})
	if err != nil || slices.ContainsFunc(turned.Finished, func(f Finished) bool { return f.Fenced }) {
		t.Error(turned, err)
	}
	if o.version >= 6 { // the lane goes on, and so does who waited
		for id, want := range map[int64]jobs.State{12: jobs.Pending, 13: jobs.Pending, 14: jobs.Blocked} {
			list, err := d.List(ctx, jobs.Filter{IDs: []int64{id}}, Page{})
			if err != nil || len(list) != 1 || list[0].State != want {
				t.Errorf("task %d should be %s: %+v, %v", id, want, list, err)
			}
		}
	}
	if n, err := d.Integrity(ctx, true); err != nil || len(n) > 0 {
		t.Error(n, err)
	}
}

// A process that dies at any statement of an upgrade leaves the old schema, with all that was in it: the next one upgrades it. The
// longest way and the shortest have all statements between them.
func TestAnUpgradeThatIsInterruptedLeavesTheOldSchema(t *testing.T) {
	list := olds(t)
	for _, o := range []old{list[0], list[len(list)-1]} {
		var all []string
		for _, name := range migrationNames()[o.version:] {
			text, err := migrations.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, statements(string(text))...)
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

// An earlier schema took any id from plain SQL: with the highest number that there is, no other task could be added, even when that one was
// deleted.
func TestAnUpgradeGivesIDsAgainAfterOneThatUsedThemUp(t *testing.T) {
	list := olds(t)
	last := list[len(list)-1]
	const poison = `INSERT INTO tasks (id, args, input) VALUES (9223372036854775807, '["cat"]', 'abc');
		INSERT INTO tasks (generation_id, id, args, run_at, created_at) VALUES (1, -5, '["true"]', -9223372036854775808, 9223372036854775807);`
	for name, more := range map[string]string{"there": "", "deleted": `DELETE FROM tasks WHERE id NOT BETWEEN 1 AND 100`} {
		path := last.write(t)
		raw, err := connect(path, "rw", 1)
		if err != nil {
			t.Fatal(err)
		}
		raw.MustExec(poison + more)
		if err := raw.Close(); err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		defer d.Close()
		next := int64(15) // there were fourteen
		if more == "" {
			next = 17
			for id, args := range map[int64]string{15: `["true"]`, 16: `["cat"]`} {
				if tasks, err := d.List(t.Context(), jobs.Filter{IDs: []int64{id}}, Page{}); err != nil || len(tasks) != 1 || string(tasks[0].Args) != args {
					t.Errorf("%s: task %d is %+v, %v; want %s", name, id, tasks, err, args)
				}
			}
			if input, err := d.Input(t.Context(), 16); string(input) != "abc" {
				t.Errorf("%s: the input is %q, %v; want abc", name, input, err)
			}
		}
		added, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, time.Now())
		if err != nil || added[0].ID != next {
			t.Errorf("%s: the next task is %v, %v; want %d", name, added, err, next)
		}
	}
}

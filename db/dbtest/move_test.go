package dbtest_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/db/internal/engine"
	"example.com/runner/db/transfer"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit/pgkit"
)

// openFunc opens a new database, the source or the target of a move.
type openFunc func(t *testing.T) *db.DB

func TestInterruptedMoveContinues(t *testing.T) {
	file := func(t *testing.T) *db.DB { return dbtest.Open(t) }
	beside := func(t *testing.T) *db.DB { return dbtest.OpenBeside(t) }
	odd := func(t *testing.T) *db.DB {
		return dbtest.OpenAt(t, filepath.Join(t.TempDir(), `it's $$ %s ? "q" $1 tasks.db`), db.Options{Create: true, Normal: true})
	}
	server := func(t *testing.T) *db.DB { return dbtest.OpenServer(t, pgkit.Address(t)) }
	for name, pair := range map[string][2]openFunc{"file to file": {file, file}, "to another program's": {file, beside},
		"from another program's": {beside, file},
		"file to server":         {odd, server}, "file to a path with special characters": {file, odd}, "server to file": {server, file},
		"server to server": {server, server}} {
		t.Run(name, func(t *testing.T) { interruptMove(t, pair[0](t), pair[1](t)) })
	}
}

const movedTasks = 600 // number of tasks to move; more than are sent at once

var moving = time.UnixMilli(1_800_000_000_000)

// interruptMove interrupts a move before each of its three commits, and checks
// that the next one completes it.
func interruptMove(t *testing.T, from, to *db.DB) {
	ctx := t.Context()
	fill(t, from)

	// Before the first commit, nobody else can write to the source, and both
	// databases stay as they were.
	cancelled, cancel := context.WithCancel(ctx)
	if _, err := transfer.Move(cancelled, from, to, moving, func(done, of int) {
		if done >= of || of < movedTasks-1 {
			t.Errorf("got progress %d of %d, want fewer of at least %d", done, of, movedTasks-1)
		}
		if err := plain(t, from); err == nil {
			t.Error("plain SQL in the middle of a move: got no error, want one")
		}
		cancel()
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled move: got error %v, want %v", err, context.Canceled)
	}
	if err := plain(t, from); err != nil {
		t.Fatal(err)
	}
	if n, err := to.Count(ctx, jobs.Filter{}); n != 0 || err != nil {
		t.Errorf("got %d tasks in the target (%v), want none", n, err)
	}

	// Before the second one, only the target has a mark.
	wantMoved(t, from, to)
	mark(t, from, engine.Frozen{})
	mark(t, to, engine.Frozen{State: engine.Incomplete, Other: from.Engine().Identity()})
	wantRejected(t, to, "is not complete")
	if _, err := from.Apply(ctx, []int64{2}, db.Cancel("", false, moving)); err != nil {
		t.Fatal(err)
	}
	wantMoved(t, from, to)
	if n, err := to.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Cancelled}}); err != nil || n != 1 {
		t.Errorf("got %d cancelled tasks in the target (%v), want 1: the rows as they were in the source at last", n, err)
	}

	// Before the third one, both databases have a mark.
	mark(t, to, engine.Frozen{State: engine.Incomplete, Other: from.Engine().Identity()})
	for range 2 {
		if rows, err := transfer.Move(ctx, from, to, moving, nil); err != nil || rows != nil {
			t.Errorf("got rows %v and error %v, want none: the move had only to open the target", rows, err)
		}
		if err := to.Foreign(ctx); err != nil {
			t.Error(err)
		}
	}

	wantRejected(t, from, "was moved to")
	if err := plain(t, from); err == nil || !strings.Contains(err.Error(), "was moved to") {
		t.Fatalf("plain SQL: got %v, want an error with %q", err, "was moved to")
	}
	if err := from.Foreign(ctx); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("register: got error %v, want %v", err, jobs.ErrConflict)
	}
	if cursors, err := to.Cursors(ctx); err != nil || len(cursors) != 1 || cursors[0].Behind != 6 {
		t.Errorf("got cursors %+v (%v), want one with the 6 ends of cancelled tasks", cursors, err)
	}

	// The tasks can run only in the new database, and each of them only once.
	if got := claimed(t, from); got != nil {
		t.Errorf("got %d claims in the old database, want none", len(got))
	}
	if got := claimed(t, to); len(got) != movedTasks-2 { // one is cancelled, and one waits for another
		t.Errorf("got %d claims, want %d", len(got), movedTasks-2)
	}
	ids, err := insert(t, to, 1)
	if err != nil || ids[0] <= movedTasks+5 {
		t.Errorf("got ids %d, error %v; want ids above %d", ids, err, movedTasks+5)
	}
}

// plain adds a task with plain SQL, which waits for locks only shortly.
func plain(t *testing.T, d *db.DB) error {
	patience := "PRAGMA busy_timeout = 50"
	if d.Server() != nil {
		patience = "SET lock_timeout = 50"
	}
	raw := dbtest.RawOf(t, d)
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), patience); err != nil {
		return err
	}
	_, err := raw.ExecContext(t.Context(), dbtest.Text(d, `INSERT INTO enqueue (args, after) VALUES ('["true"]', '[1]')`))
	return err
}

func wantMoved(t *testing.T, from, to *db.DB) {
	t.Helper()
	rows, err := transfer.Move(t.Context(), from, to, moving, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Table != "tasks" || rows[0].Rows != movedTasks {
		t.Errorf("got row counts %v, want %d rows of tasks first", rows, movedTasks)
	}
}

// mark gives a database the mark f, or none.
func mark(t *testing.T, d *db.DB, f engine.Frozen) {
	t.Helper()
	if err := d.UpdateAlone(t.Context(), func(q engine.Querier) error {
		if f == (engine.Frozen{}) {
			return engine.Thaw(q, d.Engine())
		}
		return engine.Freeze(q, d.Engine(), f)
	}); err != nil {
		t.Fatal(err)
	}
}

func TestMoveIsRejectedWhileWorkerOrTaskRuns(t *testing.T) {
	ctx := t.Context()
	for name, work := range map[string]func(*testing.T, *db.DB, db.WorkerInfo){
		"a worker": func(t *testing.T, d *db.DB, info db.WorkerInfo) {
			if _, err := d.Register(ctx, info, nil); err != nil {
				t.Fatal(err)
			}
		},
		"a task": func(t *testing.T, d *db.DB, _ db.WorkerInfo) {
			if _, err := insert(t, d, 1); err != nil {
				t.Fatal(err)
			}
			if got := claimed(t, d); len(got) != 1 {
				t.Fatalf("got %d claims, want 1", len(got))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := dbtest.Open(t), dbtest.Open(t)
			work(t, from, db.WorkerInfo{Name: "w", Lease: time.Minute, StartedAt: moving.Add(-time.Second)})
			if err := transfer.Check(ctx, from, moving); !errors.Is(err, jobs.ErrConflict) {
				t.Errorf("got %v, want error %v", err, jobs.ErrConflict)
			}
			if _, err := transfer.Move(ctx, from, to, moving, nil); !errors.Is(err, jobs.ErrConflict) {
				t.Errorf("got %v, want error %v", err, jobs.ErrConflict)
			}
			for _, d := range []*db.DB{from, to} { // after a rejected move, both databases can still be used
				if _, err := insert(t, d, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// fill enqueues tasks, then cancels and deletes the last ones.
func fill(t *testing.T, d *db.DB) {
	t.Helper()
	if err := d.MakeCursor(t.Context(), "audit", moving); err != nil {
		t.Fatal(err)
	}
	ids, err := insert(t, d, movedTasks+4) // the caller adds one more task with plain SQL
	if err != nil {
		t.Fatal(err)
	}
	last := ids[movedTasks-1:]
	if _, err := d.Apply(t.Context(), last, db.Cancel("", false, moving)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Apply(t.Context(), last, db.Delete()); err != nil {
		t.Fatal(err)
	}
}

func insert(t *testing.T, d *db.DB, n int) ([]int64, error) {
	t.Helper()
	specs := make([]jobs.Spec, n)
	for i := range specs {
		specs[i] = jobs.Command(command.Command{Argv: []string{"true"}})
	}
	added, err := d.Insert(t.Context(), specs, moving)
	ids := make([]int64, len(added))
	for i, a := range added {
		ids[i] = a.ID
	}
	return ids, err
}

func wantRejected(t *testing.T, d *db.DB, why string) {
	t.Helper()
	if _, err := insert(t, d, 1); !errors.Is(err, jobs.ErrConflict) || !strings.Contains(err.Error(), why) {
		t.Fatalf("an insert into a database that %s: got error %v, want %v with the text %q", why, err, jobs.ErrConflict, why)
	}
	if err := d.Pause(t.Context(), []string{"q"}, db.Pause{At: moving}); !errors.Is(err, jobs.ErrConflict) {
		t.Fatalf("a pause in a database that %s: got error %v, want %v", why, err, jobs.ErrConflict)
	}
	if got := claimed(t, d); got != nil {
		t.Fatalf("a worker of a database that %s: got %d claims, want none", why, len(got))
	}
}

// claimed returns all tasks that a worker can claim, or nil if the database
// rejects the claims.
func claimed(t *testing.T, d *db.DB) []jobs.Task {
	t.Helper()
	w, err := d.Register(t.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: time.Minute, StartedAt: moving.Add(-time.Hour)},
		[]db.ClaimJob{{Job: command.Job, MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var all []jobs.Task
	for {
		result, err := w.Cycle(t.Context(), db.Cycle{Now: moving, Look: true,
			Claim: db.Claim{Free: 1000, Idle: true, Lease: time.Minute}})
		if err != nil && !errors.Is(err, jobs.ErrConflict) {
			t.Fatal(err)
		}
		if len(result.Claimed) == 0 {
			return all
		}
		all = append(all, result.Claimed...)
	}
}

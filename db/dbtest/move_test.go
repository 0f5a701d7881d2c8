package dbtest_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/db/transfer"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/jobs"
)

// openFunc opens a new database, the source or the target of a move.
type openFunc func(t *testing.T) *db.DB

func TestAnInterruptedMoveContinues(t *testing.T) {
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

const movedTasks = 300 // number of tasks to move; one step of a move copies fewer

var moving = time.UnixMilli(1_800_000_000_000)

// interruptMove interrupts a move after each of its steps, and checks that a new attempt completes the move.
func interruptMove(t *testing.T, from, to *db.DB) {
	ctx := t.Context()
	fill(t, from)
	plain := func() error {
		raw := dbtest.RawOf(t, from)
		defer raw.Close()
		_, err := raw.Exec(dbtest.Text(from, `INSERT INTO enqueue (args, after) VALUES ('["true"]', '[1]')`))
		return err
	}
	if err := plain(); err != nil {
		t.Fatal(err)
	}

	// Interrupt the move after its start and after each step. The next call of Begin must continue the move.
	for step := 0; ; step++ {
		m, done, err := transfer.Begin(ctx, from, to, moving)
		if err != nil || done {
			t.Fatalf("got error %v, done %v; want nil, false", err, done)
		}
		wantRejected(t, from, "being moved")
		wantRejected(t, to, "is not complete")
		if err := plain(); err == nil || !strings.Contains(err.Error(), "being moved") {
			t.Fatalf("plain SQL: got %v, want an error with %q", err, "being moved")
		}
		if step == 0 {
			continue
		}
		n, err := m.Step(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	m, _, err := transfer.Begin(ctx, from, to, moving)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := m.End(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if cursors, err := to.Cursors(ctx); err != nil || len(cursors) != 1 || cursors[0].Behind != 5 {
		t.Errorf("got cursors %+v (%v), want one with the 5 ends of cancelled tasks", cursors, err)
	}
	if counts[0].Table != "tasks" || counts[0].Rows != movedTasks {
		t.Errorf("got row counts %v, want %d rows of tasks first", counts, movedTasks)
	}
	wantRejected(t, from, "was moved to")
	if err := from.Foreign(ctx); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("register: got error %v, want %v", err, jobs.ErrConflict)
	}
	if err := to.Foreign(ctx); err != nil {
		t.Error(err)
	}
	if err := transfer.Undo(ctx, from); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("abandon a finished move: got error %v, want %v", err, jobs.ErrConflict)
	}
	if _, done, err := transfer.Begin(ctx, from, to, moving); err != nil || !done {
		t.Errorf("got error %v, done %v; want nil, true", err, done)
	}

	// The tasks can run only in the new database, and each of them only once.
	if got := claimed(t, from); got != nil {
		t.Errorf("got %d claims in the old database, want none", len(got))
	}
	if got := claimed(t, to); len(got) != movedTasks-1 { // one task cannot be claimed, because it waits for another task
		t.Errorf("got %d claims, want %d", len(got), movedTasks-1)
	}
	ids, err := insert(t, to, 1)
	if err != nil || ids[0] <= movedTasks+5 {
		t.Errorf("got ids %d, error %v; want ids above %d", ids, err, movedTasks+5)
	}
}

func TestAnAbandonedMoveCannotContinue(t *testing.T) {
	from, to, ctx := dbtest.Open(t), dbtest.Open(t), t.Context()
	fill(t, from)
	m, _, err := transfer.Begin(ctx, from, to, moving)
	if err == nil {
		_, err = m.Step(ctx)
	}
	if err == nil {
		err = transfer.Undo(ctx, from)
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0 && err == nil; {
		n, err = m.Step(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.End(ctx); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("end by the other of two moves: got error %v, want %v", err, jobs.ErrConflict)
	}
	wantRejected(t, to, "is not complete")
	if _, err := insert(t, from, 1); err != nil {
		t.Error(err)
	}
	if _, _, err := transfer.Begin(ctx, from, to, moving); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("end of a move with foreign rows: got error %v, want %v", err, jobs.ErrConflict)
	}
	if err := transfer.Undo(ctx, from); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("got %v, want error %v", err, jobs.ErrConflict)
	}
	if _, err := insert(t, from, 1); err != nil {
		t.Error(err)
	}
}

func TestAMoveIsRejectedWhileAWorkerOrTaskRuns(t *testing.T) {
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
			if _, _, err := transfer.Begin(ctx, from, to, moving); !errors.Is(err, jobs.ErrConflict) {
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
	if _, err := d.Cancel(t.Context(), last, "", false, moving); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Delete(t.Context(), last); err != nil {
		t.Fatal(err)
	}
}

func insert(t *testing.T, d *db.DB, n int) ([]int64, error) {
	t.Helper()
	specs := make([]jobs.Spec, n)
	for i := range specs {
		specs[i] = jobs.Command{Argv: []string{"true"}}.With()
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

// claimed returns all tasks that a worker can claim, or nil if the database rejects the claims.
func claimed(t *testing.T, d *db.DB) []jobs.Task {
	t.Helper()
	w, err := d.Register(t.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: time.Minute, StartedAt: moving.Add(-time.Hour)},
		[]db.ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}})
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

package db

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

var commandTrue = []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}

// insertByOneStatement adds tasks until Insert has added one with the statement
// insertOne, and returns the id of this last task. Insert uses insertOne only
// if it checked the files of the database less than 1 ms ago (lookAgain).
func insertByOneStatement(t *testing.T, d *DB) int64 {
	t.Helper()
	for range 1000 {
		d.looked = time.Now()
		added, err := d.Insert(t.Context(), commandTrue, now())
		if err != nil {
			t.Fatal(err)
		}
		if d.stmts[insertOne] != nil {
			return added[0].ID
		}
	}
	t.Fatal("got 1000 inserts by several statements, want one by a single statement")
	return 0
}

func TestInsertByOneStatementWritesSameRow(t *testing.T) {
	d := openTest(t)
	specs := []jobs.Spec{jobs.Define[int]("job").With(7, jobs.Queue("media"), jobs.Label("label"), jobs.In(time.Hour), jobs.MaxAttempts(3))}
	specs[0].CreatedBy, specs[0].ExpiresIn, specs[0].Timeout = "ann", 2*time.Hour, time.Minute
	at := now()
	// The first write of a writer checks the files, and so does not use
	// insertOne.
	added, err := d.Insert(t.Context(), specs, at)
	if err != nil {
		t.Fatal(err)
	}
	insertByOneStatement(t, d)
	d.looked = time.Now()
	more, err := d.Insert(t.Context(), specs, at)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	columns := strings.TrimPrefix(plainColumns, "{id_column}") + ", unique_key, lane, parts, waits, schedule, tick, finished_at, outcome"
	if err := d.read.Get(&n, `SELECT count(*) FROM (SELECT DISTINCT `+columns+` FROM tasks WHERE id = ?
		OR id = ?)`, added[0].ID, more[0].ID); err != nil || n != 1 {
		t.Errorf("got %d different rows and error %v, want 1 for the two tasks", n, err)
	}
}

func TestInsertByOneStatementUsesNewIDs(t *testing.T) {
	d := openTest(t)
	last := int64(0)
	for range 5 {
		id := insertByOneStatement(t, d)
		if id != last+1 {
			t.Errorf("got id %d, want %d", id, last+1)
		}
		last = id
		if _, err := d.conn.ExecContext(t.Context(), `DELETE FROM tasks WHERE id = ?`, id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInsertByOneStatementWaitsForLock(t *testing.T) {
	other := openTest(t)
	insertBeside := func(busyTimeout time.Duration, blocked func(release func())) error {
		d, err := Open(t.Context(), other.path, Options{BusyTimeout: busyTimeout})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		insertByOneStatement(t, d)
		blocked(blockWrites(t, other))
		d.looked = time.Now()
		_, err = d.Insert(t.Context(), commandTrue, now())
		return err
	}
	var release func()
	if err := insertBeside(20*time.Millisecond, func(r func()) { release = r }); !errors.Is(err, jobs.ErrBusy) {
		t.Errorf("insert while another process writes: got error %v, want one that is %v", err, jobs.ErrBusy)
	}
	release()
	if err := insertBeside(time.Minute, func(r func()) { time.AfterFunc(20*time.Millisecond, r) }); err != nil {
		t.Errorf("insert while another process writes for 20ms: got error %v, want none", err)
	}
}

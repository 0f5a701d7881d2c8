package db

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

var commandTrue = []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}

// insertAlone adds tasks until one is added by insertOne, and returns its id. That happens only if the last check of the files was less
// than lookAgain ago.
func insertAlone(t *testing.T, d *DB) int64 {
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
	t.Fatal("no task was added by one statement")
	return 0
}

func TestATaskAddedByOneStatementIsLikeAnyOther(t *testing.T) {
	d := openTest(t)
	specs := []jobs.Spec{jobs.Define[int]("job").With(7, jobs.Queue("media"), jobs.Label("label"), jobs.In(time.Hour), jobs.MaxAttempts(3))}
	specs[0].CreatedBy, specs[0].ExpiresIn, specs[0].Timeout = "ann", 2*time.Hour, time.Minute
	at := now()
	// The first write of a writer checks the files, so it is a transaction of several statements.
	added, err := d.Insert(t.Context(), specs, at)
	if err != nil {
		t.Fatal(err)
	}
	insertAlone(t, d)
	d.looked = time.Now()
	more, err := d.Insert(t.Context(), specs, at)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	columns := strings.TrimPrefix(insertColumns, "{id_column}")
	if err := d.read.Get(&n, `SELECT count(*) FROM (SELECT DISTINCT `+columns+` FROM tasks WHERE id = ?
		OR id = ?)`, added[0].ID, more[0].ID); err != nil || n != 1 {
		t.Error("the two tasks differ", err)
	}
}

func TestIdsOfTasksAddedByOneStatementAreNotUsedAgain(t *testing.T) {
	d := openTest(t)
	last := int64(0)
	for range 5 {
		id := insertAlone(t, d)
		if id != last+1 {
			t.Errorf("id %d after %d", id, last)
		}
		last = id
		if _, err := d.conn.ExecContext(t.Context(), `DELETE FROM tasks WHERE id = ?`, id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATaskAddedByOneStatementWaitsForTheLock(t *testing.T) {
	d := openTest(t)
	insertAlone(t, d)
	other, err := Open(t.Context(), d.path, Options{BusyTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	open := gate(t, other)
	d.options.BusyTimeout = 20 * time.Millisecond
	d.looked = time.Now()
	if _, err := d.Insert(t.Context(), commandTrue, now()); !errors.Is(err, jobs.ErrBusy) {
		t.Errorf("got %v, want an error of kind ErrBusy", err)
	}
	open()
	d.options.BusyTimeout = time.Minute
	open = gate(t, other)
	time.AfterFunc(20*time.Millisecond, open)
	d.looked = time.Now()
	if _, err := d.Insert(t.Context(), commandTrue, now()); err != nil {
		t.Error(err)
	}
}

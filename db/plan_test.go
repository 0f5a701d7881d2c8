package db

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/internal/statementtest"
	"example.com/runner/test/testkit"
)

var newFile = testkit.Template(func(path string) error {
	d, err := Open(context.Background(), path, Options{Create: true, Normal: true})
	if err != nil {
		return err
	}
	return d.Close()
})

func openTest(t *testing.T) *DB {
	t.Helper()
	d, err := Open(t.Context(), newFile(t), Options{Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestEachStatementFindsItsRowsByIndex(t *testing.T) {
	d := openTest(t)
	// this connection adds the table runner_schema, which normally only a
	// database of another program has
	raw, err := sqlite.Connect(d.Path(), "rw")
	if err != nil {
		t.Fatal(err)
	}
	raw.MustExec(sqlite.CreateSchemaTable)
	raw.Close()
	plans.Check(t, d.read, d.sql)
}

func TestClaimReadsPendingTasksOnly(t *testing.T) {
	d := openTest(t)
	for _, n := range []int{1, 2, 5, 30} {
		lines := statementtest.Explain(t, d.read, d.sql.Text(claimTasks.Of(n)))
		statementtest.Plan{By: []string{byID}, Allow: []string{"SCAN next"}}.Check(t, "a claim for "+strconv.Itoa(n)+" jobs", lines)
		selects := 0
		for _, line := range lines {
			if !strings.Contains(line, "tasks") {
				continue
			}
			if strings.Contains(line, "INDEX tasks_pending (queue=? AND job=?)") {
				selects++
			} else if !strings.HasSuffix(line, byID) {
				t.Errorf("a claim for %d jobs: got the plan line %s, want pending tasks only, by an index", n, line)
			}
		}
		if selects != n {
			t.Errorf("a claim for %d jobs: got %d SELECTs, want one for each job:\n\t%s", n, selects, strings.Join(lines, "\n\t"))
		}
	}
}

// A trigger makes SQLite prepare to undo the whole statement, even if its WHEN
// is false. That costs a tenth of the time of a task.
func TestClaimsAndCompletionsRunNoTrigger(t *testing.T) {
	d := openTest(t)
	for s, want := range map[*statement]bool{
		claimTasks.Of(1): false, claimThese: false, completeTask: false, moveWaiting: false, retryFinished: true,
	} {
		text := d.sql.Text(s)
		rows, err := d.read.Queryx("EXPLAIN "+text, statementtest.AnyArgs(text)...)
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for rows.Next() {
			step, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			has = has || step[1] == "Program"
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || has != want {
			t.Errorf("runs a trigger: got %v and error %v, want %v\n%s", has, err, want, text)
		}
	}
}

func TestEveryStatementHasPlan(t *testing.T) {
	plans.Complete(t, slices.Concat(roundTrips, sharedTemplates)...)
}

package dbtest_test

import (
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/db/transfer"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestRowsOfCounterOnServerAreAddedUp adds a second row to each counter, as if
// another session had ended the same number of tasks. The counts must double.
func TestRowsOfCounterOnServerAreAddedUp(t *testing.T) {
	ctx := t.Context()
	ended := func(t *testing.T, d *db.DB) (n int) {
		t.Helper()
		byQueue, err := d.ThroughputByQueue(ctx, moving, time.Hour, 1)
		testkit.NoError(t, err)
		n = byQueue[0]["default"]
		queues, err := d.Queues(ctx, moving, moving)
		testkit.NoError(t, err)
		testkit.Equal(t, "ended tasks of the queue", queues["default"].Ended[jobs.Cancelled], n)
		return n
	}
	from := dbtest.OpenServer(t, pgkit.Address(t))
	ids, err := insert(t, from, 3)
	testkit.NoError(t, err)
	_, err = from.Apply(ctx, ids, db.Cancel("", false, moving))
	testkit.NoError(t, err)
	raw := dbtest.RawOf(t, from)
	defer raw.Close()
	_, err = raw.ExecContext(ctx, dbtest.Text(from, `INSERT INTO counters (queue, state, minute, n, shard)
		SELECT queue, state, minute, n, shard + 100 FROM counters`))
	testkit.NoError(t, err)
	testkit.Equal(t, "ended tasks", ended(t, from), 6)

	to := dbtest.Open(t)
	counts, err := transfer.Move(ctx, from, to, moving, nil)
	testkit.NoError(t, err)
	for _, table := range counts {
		if strings.HasPrefix(table.Table, "counter") {
			testkit.Equal(t, "rows of "+table.Table, table.Rows, map[string]int64{"counters": 1}[table.Table])
		}
	}
	testkit.Equal(t, "ended tasks after the move", ended(t, to), 6)
}

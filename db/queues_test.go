package db

import (
	"testing"
	"time"

	"example.com/runner/internal/testkit"
)

// manyQueues inserts a pending task of two priorities into each of [1] queues.
const manyQueues = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < 2 * ?1)
INSERT INTO tasks (generation_id, queue, job, state, priority, run_at, max_attempts, max_losses, created_at, updated_at)
	SELECT 1, 'q' || (i / 2), 'command', 'pending', i % 2, 1000 + i, 1, 1, 1, 1 FROM n`

// TestQueuesNeedNoStatementEach counts allocations, because each statement has
// about a hundred: with statements for each of ten thousand queues, the pages
// and the metrics take two seconds.
func TestQueuesNeedNoStatementEach(t *testing.T) {
	allocations := func(queues int) float64 {
		d := openTest(t)
		testkit.NoError(t, d.update(t.Context(), normal, func(tx *tx) error { return tx.run(command(manyQueues), queues) }))
		return testing.AllocsPerRun(1, func() {
			list, err := d.Queues(t.Context(), time.Now(), time.Now())
			testkit.NoError(t, err)
			testkit.Equal(t, "queues", len(list), queues)
			testkit.Equal(t, "oldest task of q7", list["q7"].Oldest, time.UnixMilli(1014).UTC())
		})
	}
	few, many := allocations(10), allocations(510)
	if each := (many - few) / 500; each > 100 {
		t.Errorf("got %.0f allocations for each queue, want at most 100", each)
	} else {
		t.Logf("%.0f allocations for each queue", each)
	}
}

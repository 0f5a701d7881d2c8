package db

import (
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
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

// endedTasks inserts [1] tasks that ended in queue [2], in state [3], from [4]
// ms on. They ran for 20 ms after a wait of 5 ms; or never, if [5] is 0.
const endedTasks = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
INSERT INTO tasks (generation_id, queue, job, state, priority, run_at, started_at, finished_at, max_attempts, max_losses,
	created_at, updated_at)
SELECT 1, ?2, 'command', ?3, 5, ?4 + i - 25, iif(?5, ?4 + i - 20, NULL), ?4 + i, 1, 1, 1, 1 FROM n`

func insertEnded(t *testing.T, d *DB, n int, queue string, state jobs.State, at int64, ran bool) {
	t.Helper()
	testkit.NoError(t, d.update(t.Context(), normal, func(tx *tx) error {
		if err := tx.run(command(endedTasks), n, queue, string(state), at, ran); err != nil {
			return err
		}
		return tx.count(map[count]int{{queue, state}: n}, time.UnixMilli(at))
	}))
}

// TestQueueOfManyFailuresHidesNoOthers fails one task, and then as many of
// another queue as one query reads.
func TestQueueOfManyFailuresHidesNoOthers(t *testing.T) {
	d, at := openTest(t), int64(3_600_000)
	insertEnded(t, d, 1, "payroll", jobs.Failed, at, true)
	insertEnded(t, d, maxFailed, "noisy", jobs.Failed, at+1, true)

	list, err := d.Queues(t.Context(), time.UnixMilli(at), time.UnixMilli(at+60_000))

	testkit.NoError(t, err)
	testkit.Equal(t, "failed tasks of the queue with one", list["payroll"].Failed, 1)
	testkit.Equal(t, "failed tasks of the other queue", list["noisy"].Failed, maxFailed)
}

// TestTimesAreThoseOfTasksThatRan cancels tasks before their start, after
// others have run.
func TestTimesAreThoseOfTasksThatRan(t *testing.T) {
	d, at := openTest(t), int64(3_600_000)
	insertEnded(t, d, 3, "q", jobs.Completed, at, true)
	insertEnded(t, d, 30, "q", jobs.Cancelled, at+10, false)

	waits, runs, err := d.Times(t.Context(), time.UnixMilli(at), 2)

	testkit.NoError(t, err)
	testkit.Equal(t, "waits", waits, []time.Duration{5 * time.Millisecond, 5 * time.Millisecond})
	testkit.Equal(t, "runs", runs, []time.Duration{20 * time.Millisecond, 20 * time.Millisecond})
}

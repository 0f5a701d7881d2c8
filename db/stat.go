package db

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// addCount adds [4] to the number of tasks of queue [1] that ended in state [2]
// in minute [3].
var addCount = command(`INSERT INTO {counters} ({shard_column}queue, state, minute, n) VALUES ({shard}?, ?, ?, ?)
ON CONFLICT ({shard_column}queue, state, minute) DO UPDATE SET n = counters.n + excluded.n`)

// These count unfinished tasks by queue and state, and pending ones also by
// job. Each reads only an index.
const (
	countPending = `SELECT queue, job, 'pending' AS state, count(*) AS n FROM {tasks} WHERE state = 'pending' GROUP BY queue, job`
	countDue     = `SELECT queue, '' AS job, state, count(*) AS n FROM {tasks} WHERE state = 'scheduled' OR state = 'retrying'
		GROUP BY queue, state`
	countBlocked = `SELECT queue, '' AS job, 'blocked' AS state, count(*) AS n FROM {tasks} WHERE waits IS NOT NULL GROUP BY queue`
	countRunning = `SELECT queue, '' AS job, 'running' AS state, count(*) AS n FROM {tasks} WHERE state = 'running' GROUP BY queue`
)

// countEnded counts the tasks that ended since minute [1], by queue and state.
const countEnded = `SELECT queue, '' AS job, state, sum(n) AS n FROM {counters} WHERE minute >= ? GROUP BY queue, state`

var countQueues = query(countPending + ` UNION ALL ` + countDue + ` UNION ALL ` + countBlocked + ` UNION ALL ` + countRunning +
	` UNION ALL ` + countEnded)

// countFailed counts, by queue, the tasks that failed since [1] and are still
// failed. It reads at most the newest [2] of them. Index: tasks_failed.
var countFailed = query(`SELECT queue, count(*) AS n FROM (SELECT queue FROM {tasks} WHERE state = 'failed' AND finished_at >= ?
	ORDER BY finished_at DESC LIMIT 0 + ?) AS newest GROUP BY queue`)

const maxFailed = 10_000

// nextJob finds the jobs of a queue by index seeks. Index: tasks_pending.
var nextJob = query(`SELECT min(job) FROM {tasks} WHERE state = 'pending' AND queue = ? AND job > ?`)

// selectHeads returns the due time of the first pending task of each priority,
// for the pairs of a queue and a job in the JSON array [1]. It is one statement
// for all queues, because ten thousand queues with a statement each take two
// seconds. BETWEEN makes PostgreSQL read the index in its order. Index:
// tasks_pending.
var selectHeads = query(`WITH RECURSIVE levels (queue, job, priority) AS (
	SELECT value->>0, value->>1, (SELECT max(priority) FROM {tasks} WHERE state = 'pending' AND queue = value->>0 AND job = value->>1)
	FROM {json_each}
	UNION ALL SELECT queue, job, (SELECT max(tasks.priority) FROM {tasks} WHERE tasks.state = 'pending' AND tasks.queue = levels.queue
		AND tasks.job = levels.job AND tasks.priority < levels.priority)
	FROM levels WHERE priority IS NOT NULL)
SELECT queue, (SELECT run_at FROM {tasks} WHERE tasks.state = 'pending' AND tasks.queue = levels.queue AND tasks.job = levels.job
	AND tasks.priority BETWEEN levels.priority AND levels.priority ORDER BY tasks.priority DESC, tasks.id LIMIT 1) AS due
FROM levels WHERE priority IS NOT NULL`)

type count struct {
	queue string
	state jobs.State
}

// count adds to the counters of the current minute, in a fixed order:
// concurrent transactions on a server lock them and must not deadlock.
func (t *tx) count(counts map[count]int, now time.Time) error {
	each := slices.SortedFunc(maps.Keys(counts), func(a, b count) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue),
			cmp.Compare(a.state, b.state))
	})
	for _, c := range each {
		if err := t.pipeline(addCount, c.queue, string(c.state), now.Unix()/60, int64(counts[c])); err != nil {
			return err
		}
	}

	return nil
}

type countRow struct {
	Queue string     `db:"queue"`
	Job   string     `db:"job"`
	State jobs.State `db:"state"`
	N     int        `db:"n"`
}

// QueueStatus is a queue with its counts.
type QueueStatus struct {
	Name   string             // name of the queue
	Counts map[jobs.State]int // numbers of unfinished tasks by state
	Jobs   map[string]int     // numbers of pending tasks by job
	Ended  map[jobs.State]int // numbers of tasks that ended in the last 24 hours, by state; a task that ended twice counts twice
	// Failed is how many of the failed tasks in Ended are still failed, because
	// they were neither retried nor deleted since. It counts the latest 10,000
	// failed tasks of all queues.
	Failed int
	Pause  Pause     // pause of this queue or of all queues, which keeps its tasks from starting; zero if there is none
	Oldest time.Time // due time of the pending task that waits longest; zero if no task waits
}

// Queues returns each queue that has unfinished tasks, is paused, or had a task
// that ended since a given time. It never scans finished tasks.
func (d *DB) Queues(ctx context.Context, since, now time.Time) (map[string]*QueueStatus, error) {
	rows, err := readRows[countRow](ctx, d, countQueues, since.Unix()/60)
	if err != nil {
		return nil, err
	}

	stats := map[string]*QueueStatus{}
	of := func(queue string) *QueueStatus {
		if stats[queue] == nil {
			stats[queue] = &QueueStatus{Name: queue, Counts: map[jobs.State]int{}, Jobs: map[string]int{},
				Ended: map[jobs.State]int{}}
		}
		return stats[queue]
	}
	for _, r := range rows {
		if r.State.Finished() {
			of(r.Queue).Ended[r.State] = r.N
		} else {
			of(r.Queue).Counts[r.State] += r.N
		}
		if r.State == jobs.Pending {
			of(r.Queue).Jobs[r.Job] = r.N
		}
	}

	if err := d.countFailed(ctx, stats, since); err != nil {
		return nil, err
	}

	pauses, err := d.Pauses(ctx, now)
	if err != nil {
		return nil, err
	}

	for queue := range pauses {
		if queue != AllQueues && queue != DeletionPause {
			of(queue)
		}
	}

	for _, stat := range stats {
		stat.Pause = pauses[AllQueues]
		if pause, ok := pauses[stat.Name]; ok && !EndsBefore(pause, stat.Pause) {
			stat.Pause = pause
		}
	}

	return stats, d.findOldest(ctx, stats)
}

// countFailed sets, for each queue, the number of tasks that are failed now. If
// one query can't read them all, a queue whose failures are older than those
// has its count of failures, which includes tasks that ran again.
func (d *DB) countFailed(ctx context.Context, stats map[string]*QueueStatus, since time.Time) error {
	rows, err := readRows[countRow](ctx, d, countFailed, since.UnixMilli(), maxFailed)
	if err != nil {
		return err
	}

	left := maxFailed
	for _, r := range rows {
		left -= r.N
		if stat := stats[r.Queue]; stat != nil {
			stat.Failed = r.N
		}
	}

	for _, stat := range stats {
		if left == 0 && stat.Failed == 0 {
			stat.Failed = stat.Ended[jobs.Failed]
		}
	}

	return nil
}

// findOldest sets, for each queue, the due time of the pending task that has
// waited longest. It compares the first task of each job and priority.
func (d *DB) findOldest(ctx context.Context, stats map[string]*QueueStatus) error {
	var pairs [][2]string
	for _, stat := range stats {
		for job := range stat.Jobs {
			pairs = append(pairs, [2]string{stat.Name, job})
		}
	}

	if len(pairs) == 0 {
		return nil
	}

	type head struct {
		Queue string `db:"queue"`
		Due   number `db:"due"`
	}
	heads, err := readRows[head](ctx, d, selectHeads, jsonText(pairs))
	for _, h := range heads {
		if stat := stats[h.Queue]; stat.Oldest.IsZero() || h.Due.time().Before(stat.Oldest) {
			stat.Oldest = h.Due.time()
		}
	}

	return err
}

package db

import (
	"slices"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// selectQueues lists the queues with pending tasks, with one index seek each.
// It uses LIMIT and not min: a session on a server that has prepared min while
// the table was small would keep a plan that reads all pending tasks. Index:
// tasks_pending.
var selectQueues = query(pendingQueues)

const pendingQueues = `WITH RECURSIVE names (queue) AS (
	SELECT (SELECT queue FROM {tasks} WHERE state = 'pending' ORDER BY queue LIMIT 1)
	UNION ALL
	SELECT (SELECT tasks.queue FROM {tasks} WHERE state = 'pending' AND tasks.queue > names.queue ORDER BY tasks.queue LIMIT 1)
	FROM names WHERE names.queue IS NOT NULL)
SELECT queue FROM names WHERE queue IS NOT NULL`

// peekTasks selects the first tasks that claimTasks would claim, for a claim
// that the limits of jobs or batches hold back. On a server it locks them, and
// passes over those that others have locked: workers with batches claim at the
// same time (fastpath.go). The last argument is the maximum number of tasks.
var peekTasks = &sqltext.Series{Template: `SELECT id, generation_id, job, run_at FROM ({parts} ORDER BY priority DESC, id LIMIT 0 + ?)
	AS first JOIN {tasks} USING (id, generation_id)`, Part: "{claim_job}", Separator: unionAll, Params: 3,
	Parts: sqltext.Parts{"tasks_of_job": claimSelect}, Reads: true}

// claimThese claims the tasks in [1]: a JSON array with the id, the generation
// and the job's max attempts of each. The other arguments are those of
// claimTasks.
var claimThese = command(`WITH next AS MATERIALIZED (SELECT CAST(value->>0 AS bigint) AS next_id,
	CAST(value->>1 AS bigint) AS next_generation, CAST(value->>2 AS bigint) AS most FROM {json_each})
UPDATE {tasks} SET ` + claimSet + `
FROM next WHERE {same_id} AND tasks.generation_id = next_generation AND {unindexed}tasks.state = 'pending'
` + claimReturning)

// listQueues reads the queues with pending tasks into c.names.
func (c *claimer) listQueues(t *tx) error {
	if c.above {
		c.names = slices.Sorted(slices.Values(c.floors.queues))
		return nil
	}
	return t.list(&c.names, selectQueues)
}

// queues returns the queues to claim from. They take turns: each claim begins
// with the queue after the one that the last claim began with.
func (t *tx) queues(c *claimer, ask Claim) ([]string, error) {
	var queues []string
	if ask.Limit == nil {
		if c.names == nil {
			if err := c.listQueues(t); err != nil {
				return nil, err
			}
		}
		queues = c.names
	} else {
		for queue, limit := range ask.Limit {
			if limit > 0 {
				queues = append(queues, queue)
			}
		}
		slices.Sort(queues)
	}

	next, found := slices.BinarySearch(queues, c.last)
	if found {
		next++
	}
	if next >= len(queues) {
		return queues, nil
	}

	return slices.Concat(queues[next:], queues[:next]), nil
}

// candidate is a pending task that a claim may take.
type candidate struct {
	ID         int64  `db:"id"`
	Generation int64  `db:"generation_id"`
	Job        string `db:"job"`
	RunAt      int64  `db:"run_at"`
}

func (c *claimer) job(name string) ClaimJob {
	return c.jobs[slices.IndexFunc(c.jobs, func(job ClaimJob) bool { return job.Job == name })]
}

// claimThese claims tasks that this transaction has already selected.
func (t *tx) claimThese(c *claimer, chosen []candidate, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	rows := make([][3]int64, len(chosen))
	for i, one := range chosen {
		rows[i] = [3]int64{one.ID, one.Generation, int64(max(c.job(one.Job).MaxAttempts, 1))}
	}

	ms := now.UnixMilli()
	return t.take(c, claimThese, []any{jsonText(rows), c.worker, now.Add(lease).UnixMilli(), ms, ms}, len(rows), lease, now)
}

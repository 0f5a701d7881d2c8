package db

import (
	"cmp"
	"slices"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// selectQueues lists the queues with pending tasks, with one index seek per queue. It uses LIMIT and not min: if a session on a server
// prepared a query with min while the table was small, it would keep a plan that reads all pending tasks. Index: tasks_pending.
var selectQueues = query(pendingQueues)

const pendingQueues = `WITH RECURSIVE names (queue) AS (
	SELECT (SELECT queue FROM {tasks} WHERE state = 'pending' ORDER BY queue LIMIT 1)
	UNION ALL
	SELECT (SELECT tasks.queue FROM {tasks} WHERE state = 'pending' AND tasks.queue > names.queue ORDER BY tasks.queue LIMIT 1)
	FROM names WHERE names.queue IS NOT NULL)
SELECT queue FROM names WHERE queue IS NOT NULL`

// peekTasks selects the first tasks that claimTasks would claim. The last argument is the maximum number of tasks. It locks no row.
var peekTasks = &sqltext.Series{Template: `SELECT id, generation_id, job, run_at FROM ({parts} ORDER BY priority DESC, id LIMIT 0 + ?)
	AS first JOIN {tasks} USING (id, generation_id)`, Part: claimSelect, Separator: unionAll, Reads: true}

// selectPriorities lists up to [3] priorities of the pending tasks of queue [1] and job [2], the lowest first, with one index seek per
// priority. Index: tasks_pending.
var selectPriorities = query(`WITH RECURSIVE levels (priority, n) AS (
	SELECT min(priority), 1 FROM {tasks} WHERE state = 'pending' AND queue = ?1 AND job = ?2
	UNION ALL
	SELECT (SELECT min(priority) FROM {tasks} WHERE state = 'pending' AND queue = ?1 AND job = ?2 AND priority > levels.priority), n + 1
	FROM levels WHERE levels.priority IS NOT NULL AND n < ?3)
SELECT priority FROM levels WHERE priority IS NOT NULL`)

// selectLevel lists the first [4] pending tasks of queue [1], job [2] and priority [3]. It leaves out suspects. Index: tasks_pending.
var selectLevel = query(`SELECT id, generation_id, job, run_at FROM {tasks} WHERE state = 'pending' AND queue = ?1 AND job = ?2
	AND {priority_3} AND NOT (losses >= 1 AND losses >= max_losses - 1)` + unreserved + `
	ORDER BY priority DESC, id LIMIT 0 + ?4`)

// claimThese claims the tasks in [1]: a JSON array with the id, the generation and the max attempts of the job of each task. The other
// arguments are those of claimTasks.
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

// queues returns the queues to claim from. The queues take turns: each claim begins with the queue after the first queue of the last
// claim.
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
		for queue, most := range ask.Limit {
			if most > 0 {
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

const (
	overdueLevels = 64 // maximum number of priorities, from the lowest up, that a search examines for a queue and a job
	// A claim searches for overdue tasks if the last search was at least MaxWait / overdueParts ago, or at least overdueEvery ago.
	overdueParts = 10
	overdueEvery = time.Second
)

// seeksOverdue reports whether this claim must search for overdue tasks: tasks that have waited for longer than MaxWait. To save time most
// claims do not search, so an overdue task may wait up to a tenth of MaxWait longer. When a claim has found an overdue task, the next
// claims search, too, until one of them finds none.
func (c *claimer) seeksOverdue(maxWait time.Duration, now time.Time) bool {
	return maxWait > 0 && now.Sub(c.searched).Abs() >= min(maxWait/overdueParts, overdueEvery)
}

// candidate is a pending task that a claim may take.
type candidate struct {
	ID         int64  `db:"id"`
	Generation int64  `db:"generation_id"`
	Job        string `db:"job"`
	RunAt      int64  `db:"run_at"`
}

// claimSome claims tasks of one queue. It is for claims to which limits apply, and for claims that search for overdue tasks (see
// Claim.MaxWait). The parameter "list" has the jobs whose tasks claimSome may claim, and "free" is the maximum number of tasks to claim.
// The result "again" is true if another call may claim more tasks.
func (t *tx) claimSome(c *claimer, list []ClaimJob, queue string, free int, ask Claim, g *admission, seekOverdue bool,
	now time.Time) (batch []jobs.Task, again bool, err error) {
	admitted := g.jobs(queue, list)
	tight := slices.ContainsFunc(admitted, func(job ClaimJob) bool { // a limit allows fewer starts of a job than the worker has free slots
		return job.Job != "" && g.capacityOf(queue, job.Job) < free
	})
	if seekOverdue {
		overdue, err := t.overdue(queue, admitted, free, now.Add(-ask.MaxWait))
		if err != nil {
			return nil, false, err
		}
		if len(overdue) > 0 {
			c.searched = time.Time{}
			batch, err := t.claimThese(c, g.choose(queue, overdue, free), ask.Lease, now)
			return batch, len(batch) > 0, err
		}
	}
	if !tight {
		batch, err := t.claimFirst(c, c.tasks, queue, free, admitted, ask.Lease, now)
		return batch, false, err
	}
	var first []candidate
	if err := t.list(&first, c.peek, append(c.jobArgs(queue, admitted, 1), int64(free))...); err != nil {
		return nil, false, err
	}
	batch, err = t.claimThese(c, g.choose(queue, first, free), ask.Lease, now)
	return batch, len(first) == free && len(batch) > 0, err
}

// overdue lists the pending tasks of a queue that became due at a given time or earlier, oldest first. For each priority it stops at the
// first task that is not overdue.
func (t *tx) overdue(queue string, list []ClaimJob, most int, then time.Time) ([]candidate, error) {
	var overdue []candidate
	for _, job := range list {
		if job.Job == "" {
			continue
		}
		var levels []int64
		if err := t.list(&levels, selectPriorities, queue, job.Job, int64(overdueLevels)); err != nil {
			return nil, err
		}
		for _, priority := range levels {
			var first []candidate
			if err := t.list(&first, selectLevel, queue, job.Job, priority, int64(most)); err != nil {
				return nil, err
			}
			for _, one := range first {
				if one.RunAt > then.UnixMilli() {
					break
				}
				overdue = append(overdue, one)
			}
		}
	}
	slices.SortFunc(overdue, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.RunAt, b.RunAt), cmp.Compare(a.ID, b.ID)) })
	return overdue, nil
}

// claimThese claims tasks that this transaction has already selected.
func (t *tx) claimThese(c *claimer, chosen []candidate, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	rows := make([][3]int64, len(chosen))
	order := make(map[int64]int, len(chosen))
	for i, one := range chosen {
		at := slices.IndexFunc(c.jobs, func(job ClaimJob) bool { return job.Job == one.Job })
		rows[i] = [3]int64{one.ID, one.Generation, int64(max(c.jobs[at].MaxAttempts, 1))}
		order[one.ID] = i
	}
	ms := now.UnixMilli()
	batch, err := t.take(c, claimThese, []any{jsonText(rows), c.worker, now.Add(lease).UnixMilli(), ms, ms}, len(rows), lease, now)
	slices.SortFunc(batch, func(a, b jobs.Task) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	return batch, err
}

package db

import (
	"cmp"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// selectQueues lists the queues that have pending tasks, by a loose scan: one seek each. Index: tasks_pending.
const selectQueues = `WITH RECURSIVE names (queue) AS (
	SELECT min(queue) FROM tasks WHERE state = 'pending'
	UNION ALL
	SELECT (SELECT min(queue) FROM tasks WHERE state = 'pending' AND queue > names.queue) FROM names WHERE names.queue IS NOT NULL)
SELECT queue FROM names WHERE queue IS NOT NULL`

// peekTasks looks at the first tasks that claimTasks would take, up to the last argument.
const peekTasks = `SELECT id, generation_id, job, run_at FROM (%s ORDER BY priority DESC, id LIMIT 0 + ?) AS first JOIN tasks USING (id, generation_id)`

// selectPriorities lists up to [4] priorities of the pending tasks of queue [1] and job [2], the lowest first: one seek each. Index: tasks_pending.
const selectPriorities = `WITH RECURSIVE levels (priority, n) AS (
	SELECT min(priority), 1 FROM tasks WHERE state = 'pending' AND queue = ?1 AND job = ?2
	UNION ALL
	SELECT (SELECT min(priority) FROM tasks WHERE state = 'pending' AND queue = ?1 AND job = ?2 AND priority > levels.priority), n + 1
	FROM levels WHERE levels.priority IS NOT NULL AND n < ?3)
SELECT priority FROM levels WHERE priority IS NOT NULL`

// selectLevel lists the first [4] pending tasks of queue [1], job [2] and priority [3] that are no suspects. Index: tasks_pending.
const selectLevel = `SELECT id, generation_id, job, run_at FROM tasks WHERE state = 'pending' AND queue = ? AND job = ? AND priority = ?
	AND NOT (losses >= 1 AND losses >= max_losses - 1) ORDER BY id LIMIT 0 + ?`

// claimThese is claimTasks for the pending tasks [1], JSON lists of an id, its generation, and its job's max attempts.
const claimThese = `WITH next AS MATERIALIZED (SELECT CAST(value->>0 AS bigint) AS id, CAST(value->>1 AS bigint) AS generation_id, CAST(value->>2 AS bigint) AS most FROM json_each(?))
UPDATE tasks SET ` + claimSet + `
FROM next WHERE tasks.id = next.id AND tasks.generation_id = next.generation_id AND tasks.state = 'pending'
` + claimReturning

// queues returns the queues to serve, the one after the last first: they take turns.
func (t *tx) queues(c *claimer, ask Claim) ([]string, error) {
	var queues []string
	if ask.Limit == nil {
		if c.names == nil {
			if err := t.list(&c.names, selectQueues); err != nil {
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
	ageMost = 64          // priorities of a queue and job that ageing looks at, the lowest first
	agePart = 10          // ageing is looked at after this part of MaxWait,
	ageRest = time.Second // or after this, whichever comes first: until then a flood is claimed without looking
)

// lookForAged says whether this claim has to look for tasks that have waited for too long. It need not often: a task that has
// waited for so long can wait a tenth of that more. Once some are found, every claim looks until there are none.
func (c *claimer) lookForAged(maxWait time.Duration, now time.Time) bool {
	return maxWait > 0 && now.Sub(c.agedAt).Abs() >= min(maxWait/agePart, ageRest)
}

// candidate is a pending task that a claim looks at before it takes it.
type candidate struct {
	ID         int64  `db:"id"`
	Generation int64  `db:"generation_id"`
	Job        string `db:"job"`
	RunAt      int64  `db:"run_at"`
}

// claimSome takes up to free tasks of a queue where claimTasks alone would not do: because of limits, or of ageing. again says that
// there may be more.
func (t *tx) claimSome(c *claimer, queue string, free int, ask Claim, g *turnstile, aged bool, now time.Time) (batch []jobs.Task, again bool, err error) {
	open := g.open(c.jobs)
	tight := slices.ContainsFunc(open, func(job ClaimJob) bool { // it has fewer starts left than may be claimed here
		return job.Job != "" && g.room(jobs.JobTarget, job.Job) < free
	})
	if aged {
		late, err := t.late(queue, open, free, now.Add(-ask.MaxWait))
		if err != nil {
			return nil, false, err
		}
		if len(late) > 0 {
			c.agedAt = time.Time{}
			batch, err := t.claimThese(c, g.choose(late, free), ask.Lease, now)
			return batch, len(batch) > 0, err
		}
	}
	if !tight {
		batch, err := t.claimFirst(c, c.text, queue, free, open, ask.Lease, now)
		return batch, false, err
	}
	var first []candidate
	if err := t.list(&first, c.peek, append(c.arms(queue, open, 1), int64(free))...); err != nil {
		return nil, false, err
	}
	batch, err = t.claimThese(c, g.choose(first, free), ask.Lease, now)
	return batch, len(first) == free && len(batch) > 0, err
}

// late lists the pending tasks of a queue that were due before then, the longest waiting first. It looks at the first of each
// priority: behind one that is not late no other counts as late.
func (t *tx) late(queue string, list []ClaimJob, most int, then time.Time) ([]candidate, error) {
	var late []candidate
	for _, job := range list {
		if job.Job == "" {
			continue
		}
		var levels []int64
		if err := t.list(&levels, selectPriorities, queue, job.Job, int64(ageMost)); err != nil {
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
				late = append(late, one)
			}
		}
	}
	slices.SortFunc(late, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.RunAt, b.RunAt), cmp.Compare(a.ID, b.ID)) })
	return late, nil
}

// claimThese takes tasks that were looked at in this transaction.
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

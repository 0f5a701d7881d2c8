package db

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// claimArm finds pending tasks of queue [2] and job [3], whose own max_attempts is [1]: those that are not suspects. Index: tasks_pending.
const claimArm = `SELECT id, generation_id, priority, ? AS most FROM tasks WHERE state = 'pending' AND queue = ? AND job = ?
	AND NOT (losses >= 1 AND losses >= max_losses - 1)`

// claimTasks takes up to [1] tasks from the arms of all jobs (joined by UNION ALL, which SQLite merges in index order, without
// a sort, stopping at the limit) for worker [2], lease until [3], started at [4], time [5]. Returns the claimed rows in no
// order: Claim sorts them. Promise: a task goes to one caller only. MATERIALIZED plans the subquery once. LIMIT is no bare parameter:
// SQLite would look at its value, and prepare the statement again for each (with 30 jobs: 900 µs instead of 90).
const claimTasks = `WITH next AS MATERIALIZED (%s ORDER BY priority DESC, id LIMIT 0 + ?)
UPDATE tasks SET ` + claimSet + `
FROM next WHERE tasks.id = next.id AND tasks.generation_id = next.generation_id
` + claimReturning

// The two parts that claimTasks and claimThese share.
const (
	claimSet = `state = 'running', generation_id = tasks.generation_id + 1, attempt = tasks.attempt + 1,
	max_attempts = coalesce(max_attempts, most), worker = ?, lease_expires_at = ?, started_at = ?, updated_at = ?, outcome = NULL, result = NULL`
	claimReturning = `RETURNING tasks.id, tasks.generation_id, job, args, label, queue, tasks.priority, run_at, attempt, max_attempts, losses, max_losses,
	options, parts, created_at, created_by, unique_key, expires_at, schedule, tick, lane, ` + inputBytes
)

// ClaimJob is a job that a worker can run, and the max attempts of its tasks that name none.
type ClaimJob struct {
	Job         string
	MaxAttempts int
}

// Claim asks for tasks.
type Claim struct {
	Free  int            // at most so many
	Lease time.Duration  // how long the tasks are the worker's, unless a beat renews it
	Idle  bool           // the worker runs nothing: it can take a suspect, which runs alone
	Limit map[string]int // at most so many of these queues; nil: any queue; a queue that is not named: none of it
	// MaxWait makes tasks that have been due for longer the first of their queue, whatever their priority; 0: off.
	MaxWait time.Duration
}

// claimer finds the tasks of one worker. It is used by one goroutine.
type claimer struct {
	worker   int64 // its number
	id       string
	jobs     []ClaimJob
	text     string    // claimTasks with an arm for each job
	alone    string    // the same for suspects
	peek     string    // the arms of claimTasks with their limit, to look before claiming
	last     string    // the queue that was served first the last time
	suspects []suspect // of these jobs, that waited when that was last looked at
	names    []string  // the queues that had pending tasks when they were last listed; nil: list them
	agedAt   time.Time // when ageing was last looked at and found nothing
}

// newClaimer prepares the claims of a worker; server: in the words of one.
func newClaimer(id string, jobs []ClaimJob, server *dialect) *claimer {
	text := func(statement, arm string) string {
		return fmt.Sprintf(statement, strings.TrimSuffix(strings.Repeat(arm+" UNION ALL ", len(jobs)), " UNION ALL "))
	}
	c := &claimer{id: id, jobs: jobs}
	if server != nil {
		c.text, c.alone = server.claimText(claimTasks, claimArm, len(jobs)), server.claimText(claimTasks, suspectArm, len(jobs))
		c.peek = text(peekTasks, server.typed(claimArm))
		return c
	}
	c.text, c.alone, c.peek = text(claimTasks, claimArm), text(claimTasks, suspectArm), text(peekTasks, claimArm)
	return c
}

// claim takes tasks for the free slots and returns them in the order in which to start them, and when a rate lets the next one
// start; zero: no task waits for a rate.
func (t *tx) claim(c *claimer, ask Claim, now time.Time) (claimed []jobs.Task, next time.Time, err error) {
	if ask.Free <= 0 || len(c.jobs) == 0 {
		return nil, next, nil
	}
	queues, err := t.queues(c, ask)
	if err != nil || len(queues) == 0 {
		return nil, next, err
	}
	g, err := t.openTurnstile(now)
	if err != nil {
		return nil, next, err
	}
	queues = g.awake(queues)
	if claimed, err = t.claimFrom(c, g, g.roomy(queues), ask, now); err == nil {
		next, err = t.closeTurnstile(g, c, queues, claimed, now)
	}
	return claimed, next, err
}

// claimFrom takes tasks of queues in turn, or one suspect.
func (t *tx) claimFrom(c *claimer, g *turnstile, queues []string, ask Claim, now time.Time) ([]jobs.Task, error) {
	if len(queues) > 0 {
		c.last = queues[0]
	}
	if len(c.suspects) > 0 {
		if claimed, over, err := t.suspect(c, ask, queues, g, now); over || err != nil {
			return claimed, err
		}
	}
	aged := c.lookForAged(ask.MaxWait, now)
	if aged {
		c.agedAt = now
	}
	var claimed []jobs.Task
	taken := map[string]int{}
	for pass := range 2 { // first a fair share for each queue, then what is left for those that have more
		for i, queue := range queues {
			free := ask.Free - len(claimed)
			if pass == 0 {
				free = (free + len(queues) - i - 1) / (len(queues) - i)
			}
			if most, ok := ask.Limit[queue]; ok {
				free = min(free, most-taken[queue])
			}
			if free <= 0 {
				continue
			}
			batch, err := t.claimQueue(c, queue, free, ask, g, aged, len(queues) == 1, now)
			if err != nil {
				return nil, err
			}
			taken[queue] += len(batch)
			if claimed == nil {
				claimed = batch
			} else {
				claimed = append(claimed, batch...)
			}
		}
		if len(claimed) == ask.Free || len(queues) <= 1 {
			break
		}
	}
	if len(claimed) < ask.Free {
		c.names = nil
	}
	return claimed, nil
}

// claimQueue takes up to free tasks of a queue, in the order in which to start them. final: nothing else is written after that.
func (t *tx) claimQueue(c *claimer, queue string, free int, ask Claim, g *turnstile, aged, final bool, now time.Time) ([]jobs.Task, error) {
	if g == nil && !aged { // the usual case
		if final && t.last && t.db.server != nil {
			if err := t.commitNext(); err != nil {
				return nil, err
			}
		}
		return t.claimFirst(c, c.text, queue, free, c.jobs, ask.Lease, now)
	}
	var claimed []jobs.Task
	for {
		free := min(free-len(claimed), g.room(jobs.QueueTarget, queue))
		if free <= 0 {
			return claimed, nil
		}
		batch, again, err := t.claimSome(c, queue, free, ask, g, aged, now)
		if err != nil {
			return nil, err
		}
		g.take(queue, batch)
		claimed = append(claimed, batch...)
		if !again {
			return claimed, nil
		}
	}
}

// claimFirst takes the first tasks of a queue by text, one of the statements of c, of the jobs in list; one without a name is passed over.
func (t *tx) claimFirst(c *claimer, text, queue string, free int, list []ClaimJob, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	args := c.arms(queue, list, 5)
	ms := now.UnixMilli()
	return t.take(c, text, append(args, int64(free), c.worker, now.Add(lease).UnixMilli(), ms, ms), free, lease, now)
}

// arms binds the arms of claimTasks. A job without a name binds NULL, which is equal to nothing.
func (c *claimer) arms(queue string, list []ClaimJob, more int) []any {
	args := make([]any, 0, 3*len(list)+more)
	for _, job := range list {
		args = append(args, int64(max(job.MaxAttempts, 1)), queue, nullText(job.Job))
	}
	return args
}

// take runs a claim of at most so many tasks and completes them.
func (t *tx) take(c *claimer, text string, args []any, most int, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	claimed, err := t.claimRows(text, args, most)
	if err != nil {
		return nil, err
	}
	for i := range claimed { // what the claim has set
		task := &claimed[i]
		task.State, task.WorkerID, task.LeaseExpiresAt, task.StartedAt, task.UpdatedAt = jobs.Running, c.id, now.Add(lease), now, now
	}
	slices.SortFunc(claimed, func(a, b jobs.Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return claimed, nil
}

// claimRows scans by position: by name it would be a fifth of a worker's time.
func (t *tx) claimRows(text string, args []any, most int) ([]jobs.Task, error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(t.ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var claimed []jobs.Task
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.ID, &r.GenerationID, &r.Job, &r.Args, &r.Label, &r.Queue, &r.Priority, &r.RunAt, &r.Attempt, &r.MaxAttempts,
			&r.Losses, &r.MaxLosses, &r.Options, &r.Parts, &r.CreatedAt, &r.CreatedBy, &r.UniqueKey, &r.ExpiresAt, &r.Schedule, &r.Tick, &r.Lane,
			&r.InputBytes); err != nil {
			return nil, err
		}
		if claimed == nil { // a task is large: growing to a hundred would copy each twice
			claimed = make([]jobs.Task, 0, min(most, 100))
		}
		claimed = append(claimed, r.task())
	}
	t.wrote = t.wrote || len(claimed) > 0
	return claimed, rows.Err()
}

package db

import (
	"cmp"
	"slices"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// A claim makes pending tasks the running tasks of one worker. It's the second
// part of a worker's Cycle, in the same transaction. On a server, most claims
// have a transaction of their own instead (see fastpath.go).
//
// The claim visits the queues in turn. It first gives each an equal share of
// the free slots, and then the rest to queues with more tasks. Within a queue
// one statement selects and updates the first tasks. If the limit of a job or a
// batch holds tasks back, or if jobs run in batches, the claim selects
// candidates first (candidate.go, fill.go).
//
// Invariants:
//   - Only one worker gets a task, because the UPDATE is a compare-and-swap on
//     (id, generation_id). Each claim is a new generation.
//   - Tasks of a queue start by priority, then id.
//   - Two workers never use the same capacity of a limit, since the transaction
//     reads and writes the limits (admission.go).
//   - Only an idle worker claims a suspect, and no other task with it
//     (suspect.go).
//   - A claim does no harm if the worker doesn't receive its result. Its
//     heartbeats find such a claim, and it gives the tasks back.
//
// Measurements: a claim in two steps (a SELECT, then a compare-and-swap of each
// row) takes as long as one statement. Returning 12 columns instead of 22 is
// less than 5 % faster for 100 tasks, no faster for 10, and slower for each
// task with an option. See docs/dev/performance-notes.md.

// claimSelect selects the pending tasks of queue [2] and job [3] that are no
// suspects. [1] is the job's max attempts. Index: tasks_pending.
const claimSelect = `SELECT id, generation_id, priority, {bigint_param} AS most{row_address} FROM {tasks}
	WHERE state = 'pending' AND queue = ? AND job = ? AND NOT (losses >= 1 AND losses >= max_losses - 1)` + unreserved

// claimTasks has the statements that claim the first pending tasks of several
// jobs. Each statement has one SELECT per job (claimSelect) with three
// parameters. After the parameters of all SELECTs come the maximum number of
// tasks, the worker, the end of the lease, and twice the current time.
var claimTasks = &sqltext.Series{Template: claimJobs, Part: "{claim_job}", Separator: unionAll, Params: 3,
	Parts: sqltext.Parts{"tasks_of_job": claimSelect}}

// claimJobs is the template of a claim. SQLite merges the SELECTs of the jobs
// in the order of the index, without a sort, and stops at the limit. The rows
// come back in no order; the function take sorts them. On PostgreSQL the
// fragment claim_job repeats the ORDER BY in each SELECT.
//
// MATERIALIZED makes SQLite plan the subquery only once. The limit is "0 + ?"
// because with a bare parameter SQLite would prepare the statement again for
// each value (900 µs instead of 90 µs with 30 jobs).
const claimJobs = `WITH next (next_id, next_generation, next_priority, most) AS MATERIALIZED (
	{parts} ORDER BY priority DESC, id LIMIT 0 + ?)
UPDATE {tasks} SET ` + claimSet + `
FROM next WHERE {same_row} AND tasks.generation_id = next_generation
` + claimReturning

const unionAll = " UNION ALL "

// claimJobs and claimThese share these parts.
const (
	claimSet = `state = 'running', generation_id = tasks.generation_id + 1, attempt = tasks.attempt + 1,
	max_attempts = coalesce(max_attempts, most), worker = ?, lease_expires_at = ?, started_at = ?, updated_at = ?,
	outcome = NULL, result = NULL`
	// In RETURNING, SQLite accepts no alias of the updated table. So the
	// columns of the subquery have other names than those of the table.
	claimReturning = `RETURNING id, generation_id, job, args, label, queue, priority, run_at, attempt, max_attempts, losses, max_losses,
	options, parts, created_at, created_by, unique_key, expires_at, schedule, tick, lane,
	CASE WHEN (parts & 1) = 1 THEN coalesce((SELECT length(data) FROM {inputs} WHERE task_id = id), -1) ELSE 0 END`
)

// ClaimJob is a job that a worker can run.
type ClaimJob struct {
	Job         string
	MaxAttempts int           // of tasks that don't set their own
	Batch       int           // how many tasks of the job share a slot; 0 or 1 if each has its own
	Wait        time.Duration // how long a due task waits for Batch tasks of the job in its queue
}

// Claim is a request for tasks.
type Claim struct {
	Free     int           // greatest number of tasks to claim; a batch counts as one task
	Prefetch int           // how many of the Free tasks would wait for a slot; with limits or pauses, none of those
	Only     int64         // id of the only task to claim; 0 for any task, -1 for none
	Lease    time.Duration // time until the lease of a claimed task ends unless a heartbeat renews it
	Idle     bool          // whether the worker runs no task, so that it can take a suspect
	// Greatest number of tasks from each queue; a batch counts as one. The
	// claim takes none from a queue that isn't a key. nil allows all queues.
	Limit map[string]int
}

// claimer claims the tasks of one worker. One goroutine uses it.
type claimer struct {
	worker   int64 // number of the worker
	id       string
	jobs     []ClaimJob
	batches  bool       // whether one of the jobs sets ClaimJob.Batch
	waits    bool       // whether one of the jobs sets ClaimJob.Wait
	tasks    *statement // the statement claimTasks, with one SELECT for each job
	peek     *statement // the statement peekTasks, with one SELECT for each job
	last     string     // queue that the last claim began with
	suspects []suspect  // pending suspects that the worker can run, as the last query found them
	names    []string   // queues with pending tasks, as the last query found them; nil if they must be listed again
	floors   floors
	above    bool // whether the claim of this cycle reads only the index entries above the floors
}

func newClaimer(id string, list []ClaimJob) *claimer {
	n := len(list)
	batches := slices.ContainsFunc(list, func(j ClaimJob) bool { return j.Batch > 1 })
	waits := slices.ContainsFunc(list, func(j ClaimJob) bool { return j.Wait > 0 })
	return &claimer{id: id, jobs: list, batches: batches, waits: waits, tasks: claimTasks.Of(n),
		peek: peekTasks.Of(n)}
}

// claim claims tasks for the free slots, and returns them in the order in which
// to start them. For next see CycleResult.NextStart.
func (t *tx) claim(c *claimer, ask Claim, now time.Time) (claimed []jobs.Task, next time.Time, err error) {
	t.full = false
	if ask.Free <= 0 || len(c.jobs) == 0 {
		return nil, next, nil
	}
	if ask.Only != 0 {
		return t.claimOnly(c, ask, now)
	}
	if c.above {
		defer func() {
			if look := c.floors.looked.Add(c.floors.every); next.IsZero() || look.Before(next) {
				next = look
			}
		}()
	}

	queues, err := t.queues(c, ask)
	if err != nil || len(queues) == 0 {
		return nil, next, err
	}

	g, err := t.readAdmission(now)
	if err != nil {
		return nil, next, err
	}
	if g.restricts {
		ask.Free -= ask.Prefetch
	}

	// the limit of the whole database may allow fewer starts than Free; the
	// queues share this smaller number
	ask.Free = min(ask.Free, g.capacity(AllTarget, ""))
	var full time.Time
	if c.waits && ask.Free > 0 {
		if full, err = t.readFilling(g, c, queues, ask, now); err != nil {
			return nil, next, err
		}
	}
	if claimed, err = t.claimFrom(c, g, g.openQueues(queues), ask, now); err == nil {
		t.full = g.isUsedUp()
		next, err = t.saveAdmission(g, c, queues, claimed, now)
	}
	if next.IsZero() || !full.IsZero() && full.Before(next) {
		next = full
	}

	return claimed, next, err
}

// claimFrom claims from the queues in turn, or only a suspect (see
// claimSuspect).
func (t *tx) claimFrom(c *claimer, g *admission, queues []string, ask Claim, now time.Time) ([]jobs.Task, error) {
	if len(queues) > 0 {
		c.last = queues[0]
	}
	if len(c.suspects) > 0 {
		if claimed, over, err := t.claimSuspect(c, ask, queues, g, now); over || err != nil {
			return claimed, err
		}
	}

	var claimed []jobs.Task
	left := ask.Free
	taken := map[string]int{}
	for pass := range 2 { // pass 0 gives each queue an equal share; pass 1 gives the remaining slots to queues with more tasks
		for i, queue := range queues {
			free := left
			if pass == 0 {
				free = (left + len(queues) - i - 1) / (len(queues) - i)
			}
			if limit, ok := ask.Limit[queue]; ok {
				free = min(free, limit-taken[queue])
			}
			if free <= 0 {
				continue
			}

			some, used, err := t.claimQueue(c, queue, free, ask, g, len(queues) == 1, now)
			if err != nil {
				return nil, err
			}

			taken[queue] += used
			left -= used
			if claimed == nil {
				claimed = some
			} else {
				claimed = append(claimed, some...)
			}
		}
		if left == 0 || len(queues) <= 1 {
			break
		}
	}

	if left > 0 {
		c.names = nil
	}

	return claimed, nil
}

// claimQueue claims tasks of a queue, in the order in which to start them, and
// returns how many free slots they use. Further tasks of a batch join its slot.
// final says that the transaction writes nothing after this claim, so that the
// engine may send the commit along.
func (t *tx) claimQueue(c *claimer, queue string, free int, ask Claim, g *admission, final bool,
	now time.Time) (claimed []jobs.Task, used int, err error) {
	if !g.restricts && !c.batches {
		if final && t.last {
			t.commitNext()
		}
		claimed, err = t.claimFirst(c, queue, free, c.jobs, ask.Lease, now)
		return claimed, len(claimed), err
	}

	s := slots{g: g, c: c, queue: queue, free: free, room: map[string]int{}}
	for {
		admitted, limit, simple := s.admit()
		if limit == 0 {
			return claimed, free - s.free, nil
		}
		if simple { // one statement is a seventh faster than two
			some, err := t.claimFirst(c, queue, limit, admitted, ask.Lease, now)
			for i := range some {
				s.take(some[i].Job)
			}
			return append(claimed, some...), free - s.free, err
		}

		var first []candidate
		if err := t.list(&first, c.peek, append(c.jobArgs(queue, admitted, 1), int64(limit))...); err != nil {
			return nil, 0, err
		}

		all := len(first)
		first = slices.DeleteFunc(first, func(one candidate) bool { return !s.take(one.Job) })
		some, err := t.claimThese(c, first, ask.Lease, now)
		if err != nil {
			return nil, 0, err
		}

		claimed = append(claimed, some...)
		if all < limit || len(some) == 0 {
			return claimed, free - s.free, nil
		}
	}
}

// claimFirst claims the first tasks of a queue.
func (t *tx) claimFirst(c *claimer, queue string, free int, list []ClaimJob, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	args, text := c.jobArgs(queue, list, 5), c.tasks
	if c.above {
		args, text = c.aboveArgs(queue, list)
	}
	ms := now.UnixMilli()
	claimed, err := t.take(c, text, append(args, int64(free), c.worker, now.Add(lease).UnixMilli(), ms, ms), free, lease, now)
	if err == nil && t.db.traits.FastPath {
		c.floors.note(claimed)
	}
	return claimed, err
}

// jobArgs returns the arguments of the SELECTs of all jobs, with space for
// more. A job with an empty name gets NULL, which matches no row.
func (c *claimer) jobArgs(queue string, list []ClaimJob, more int) []any {
	args := make([]any, 0, 3*len(list)+more)
	for _, job := range list {
		args = append(args, int64(max(job.MaxAttempts, 1)), queue, nullText(job.Job))
	}
	return args
}

// take runs a claim and returns at most limit tasks, in the order in which they
// start. It scans by position, since scanning by name takes a fifth of a
// worker's time.
func (t *tx) take(c *claimer, text *statement, args []any, limit int, lease time.Duration, now time.Time) ([]jobs.Task, error) {
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
		if err := rows.Scan(&r.ID, &r.GenerationID, &r.Job, &r.Args, &r.Label, &r.Queue, &r.Priority, &r.RunAt, &r.Attempt,
			&r.MaxAttempts, &r.Losses, &r.MaxLosses, &r.Options, &r.Parts, &r.CreatedAt, &r.CreatedBy, &r.UniqueKey, &r.ExpiresAt,
			&r.Schedule, &r.Tick, &r.Lane, &r.InputBytes); err != nil {
			return nil, err
		}
		if claimed == nil { // append would copy each task about twice while the slice grows, and tasks are large
			claimed = make([]jobs.Task, 0, min(limit, 100))
		}

		claimed = append(claimed, r.task())
		task := &claimed[len(claimed)-1]
		task.State, task.WorkerID, task.LeaseExpiresAt, task.StartedAt, task.UpdatedAt = jobs.Running, c.id, now.Add(lease), now, now
	}

	t.changed = t.changed || len(claimed) > 0 // a claim that finds nothing sends no notification to other processes
	slices.SortFunc(claimed, func(a, b jobs.Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return claimed, rows.Err()
}

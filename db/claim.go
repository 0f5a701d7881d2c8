package db

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// claimArm finds pending tasks of queue [2] and job [3], whose own max_attempts is [1]: those that are not suspects. Index: tasks_pending.
const claimArm = `SELECT id, generation_id, priority, ? AS most FROM tasks WHERE state = 'pending' AND queue = ? AND job = ?
	AND NOT (losses >= 1 AND losses >= max_losses - 1)`

// suspectArm is claimArm for suspects, as jobs.Task.Suspect says. Index: tasks_lost, which holds few.
const suspectArm = `SELECT id, generation_id, priority, ? AS most FROM tasks WHERE +state = 'pending' AND queue = ? AND job = ?
	AND losses >= 1 AND losses >= max_losses - 1 AND finished_at IS NULL`

// selectSuspects lists where suspects wait, and since when. Index: tasks_lost.
const selectSuspects = `SELECT queue, job, updated_at FROM tasks
WHERE +state = 'pending' AND losses >= 1 AND losses >= max_losses - 1 AND finished_at IS NULL LIMIT 100`

// claimTasks takes up to [1] tasks from the arms of all jobs (joined by UNION ALL, which SQLite merges in index order, without
// a sort, stopping at the limit) for worker [2], lease until [3], started at [4], time [5]. Returns the claimed rows in no
// order: Claim sorts them. Promise: a task goes to one caller only. MATERIALIZED plans the subquery once.
const claimTasks = `WITH next AS MATERIALIZED (%s ORDER BY priority DESC, id LIMIT ?)
UPDATE tasks SET ` + claimSet + `
FROM next WHERE tasks.id = next.id AND tasks.generation_id = next.generation_id
` + claimReturning

// The two parts that claimTasks and claimThese share.
const (
	claimSet = `state = 'running', generation_id = tasks.generation_id + 1, attempt = tasks.attempt + 1,
	max_attempts = coalesce(max_attempts, most), worker_id = ?, lease_expires_at = ?, started_at = ?, updated_at = ?, reason = NULL,
	error = NULL, result = NULL, exit_code = NULL, signal = NULL, duration = NULL, output_bytes = 0, output_truncated = 0,
	progress = NULL, cancel_requested_at = NULL, cancel_now = 0, cancel_text = NULL`
	claimReturning = `RETURNING tasks.id, tasks.generation_id, job, args, label, queue, tasks.priority, run_at, attempt, max_attempts, losses, max_losses,
	timeout, kill_after, backoff, backoff_delay, backoff_max, retry_on, output_limit, path, cwd, env, env_file, input_bytes,
	created_at, created_by, schedule, tick, lane, after IS NOT NULL OR after_any IS NOT NULL`
)

// selectDue returns when the next scheduled or retrying task is due, when the next task expires, and when the rate of a lane lets its
// next task start. Null: none. A row of plain SQL may hold any time, 0 included. Indexes: tasks_due, tasks_expiry, limits_due.
const selectDue = `SELECT (SELECT min(run_at) FROM tasks WHERE state = 'scheduled' OR state = 'retrying'),
	(SELECT min(expires_at) FROM tasks WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL),
	(SELECT min(due_at) FROM limits WHERE due_at IS NOT NULL)`

// firstDue are the first tasks due at its one argument. Index: tasks_due, and nothing else.
const firstDue = `SELECT id FROM tasks WHERE (state = 'scheduled' OR state = 'retrying') AND run_at <= ? ORDER BY run_at LIMIT 1000`

// promoteTasks makes tasks pending that are due at [2]; time [1]. Those that others have a say in are left to promoteOrdered.
const promoteTasks = `UPDATE tasks SET state = 'pending', generation_id = generation_id + 1, updated_at = ?
WHERE id IN (` + firstDue + `) AND lane IS NULL AND (generation_id > 0 OR after IS NULL AND after_any IS NULL)`

// selectOrdered lists those of the first tasks due at [1] that have a lane, or that plain SQL has written and that name others to wait for.
const selectOrdered = `SELECT id, queue, lane, state, after, after_any, generation_id FROM tasks
WHERE id IN (` + firstDue + `) AND (lane IS NOT NULL OR generation_id = 0 AND (after IS NOT NULL OR after_any IS NOT NULL))`

// expireTasks cancels tasks that have not started by [3]; times [1] and [2]. Index: tasks_expiry.
const expireTasks = `UPDATE tasks SET state = 'cancelled', generation_id = generation_id + 1, reason = 'expired', error = 'not started in time',
	waits = NULL, finished_at = ?, updated_at = ? WHERE id IN (
	SELECT id FROM tasks WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL AND expires_at <= ?
	ORDER BY expires_at LIMIT 1000) RETURNING id, queue, lane`

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
	worker string
	jobs   []ClaimJob
	text   string               // claimTasks with an arm for each job
	alone  string               // the same for suspects
	peek   string               // the arms of claimTasks with their limit, to look before claiming
	last   string               // the queue that was served first the last time
	since  map[string]time.Time // the queues in which suspects of these jobs waited when that was last looked at, and since when
	names  []string             // the queues that had pending tasks when they were last listed; nil: list them
	agedAt time.Time            // when ageing was last looked at and found nothing
}

func newClaimer(worker string, jobs []ClaimJob) *claimer {
	text := func(statement, arm string) string {
		return fmt.Sprintf(statement, strings.TrimSuffix(strings.Repeat(arm+" UNION ALL ", len(jobs)), " UNION ALL "))
	}
	return &claimer{worker: worker, jobs: jobs, text: text(claimTasks, claimArm), alone: text(claimTasks, suspectArm), peek: text(peekTasks, claimArm)}
}

// suspectPatience is how long a suspect waits for an idle worker before busy ones take nothing more, so that one of them becomes it.
const suspectPatience = 30 * time.Second

// look takes note of where suspects wait that c could run.
func (t *tx) look(c *claimer) error {
	var rows []struct {
		Queue     string `db:"queue"`
		Job       string `db:"job"`
		UpdatedAt number `db:"updated_at"`
	}
	c.since = nil
	if err := t.list(&rows, selectSuspects); err != nil {
		return err
	}
	for _, r := range rows {
		if !slices.ContainsFunc(c.jobs, func(j ClaimJob) bool { return j.Job == r.Job }) {
			continue
		}
		if c.since == nil {
			c.since = map[string]time.Time{}
		}
		if at, known := c.since[r.Queue]; !known || r.UpdatedAt.time().Before(at) {
			c.since[r.Queue] = r.UpdatedAt.time()
		}
	}
	return nil
}

// suspect takes one suspect for an idle worker. For a busy one, over says that it should take nothing.
func (t *tx) suspect(c *claimer, ask Claim, queues []string, g *turnstile, now time.Time) (claimed []jobs.Task, over bool, err error) {
	for _, queue := range queues {
		since, waits := c.since[queue]
		if most, limited := ask.Limit[queue]; !waits || limited && most <= 0 {
			continue
		}
		if !ask.Idle {
			over = over || now.Sub(since) >= suspectPatience
			continue
		}
		if claimed, err = t.claimFirst(c, c.alone, queue, 1, g.open(c.jobs), ask.Lease, now); len(claimed) > 0 || err != nil {
			g.take(queue, claimed)
			return claimed, true, err
		}
		if g == nil { // else it may be a limit that keeps it
			delete(c.since, queue)
		}
	}
	return nil, over, nil
}

// dueMost is how many thousands of tasks become pending or expire in one turn: others wait for the lock.
const dueMost = 10

// due makes pending what is due and cancels what has expired at now. It returns when to do it again, and when the rate of a lane
// lets a task start that is due already; zero: nothing waits.
func (t *tx) due(now time.Time) (next, lane time.Time, err error) {
	for range dueMost {
		var due, expiry, rate sql.NullInt64
		if err := t.scan(selectDue, nil, &due, &expiry, &rate); err != nil {
			return next, lane, err
		}
		over := func(at sql.NullInt64) bool { return at.Valid && at.Int64 <= now.UnixMilli() }
		isDue, isOver, isFree := over(due), over(expiry), over(rate)
		if isOver { // before it could be claimed
			if err := t.expire(now); err != nil {
				return next, lane, err
			}
		}
		if isDue {
			if err := t.promote(now); err != nil {
				return next, lane, err
			}
		}
		if isFree {
			if err := t.freeDueLanes(now); err != nil {
				return next, lane, err
			}
		}
		if isDue || isOver || isFree {
			continue
		}
		var first sql.NullInt64
		for _, at := range []sql.NullInt64{due, expiry, rate} {
			if at.Valid && (!first.Valid || at.Int64 < first.Int64) {
				first = at
			}
		}
		return number(first.Int64).time(), number(rate.Int64).time(), nil
	}
	return now, lane, nil // there is more
}

func (t *tx) expire(now time.Time) error {
	var rows []struct {
		ID    int64  `db:"id"`
		Queue string `db:"queue"`
		Lane  text   `db:"lane"`
	}
	ms := now.UnixMilli()
	if err := t.list(&rows, expireTasks, ms, ms, ms); err != nil {
		return err
	}
	ends := make([]end, len(rows))
	for i, r := range rows {
		ends[i] = end{id: r.ID, queue: r.Queue, lane: string(r.Lane), state: jobs.Cancelled, waited: true}
	}
	return t.ended(ends, now)
}

// promote moves on what is due: those that others have a say in as these allow, the rest at once.
func (t *tx) promote(now time.Time) error {
	var ordered []row
	if err := t.list(&ordered, selectOrdered, now.UnixMilli()); err != nil {
		return err
	}
	if err := t.promoteOrdered(ordered, now); err != nil {
		return err
	}
	_, err := t.exec(promoteTasks, now.UnixMilli(), now.UnixMilli())
	return err
}

// promoteOrdered moves on due tasks that have a lane, or that wait for others.
func (t *tx) promoteOrdered(rows []row, now time.Time) error {
	var lanes laneSet
	var ends []end
	for i := range rows {
		r := &rows[i]
		var err error
		switch {
		case r.GenerationID == 0 && (r.After != "" || r.AfterAny != ""):
			ends, err = t.adopt(r, ends, &lanes, now)
		case jobs.State(r.State).Keeps():
			err = t.startHolder(r.ID, string(r.Lane), now)
		default:
			lanes.add(string(r.Lane))
			_, err = t.exec(blockTask, now.UnixMilli(), r.ID)
		}
		if err != nil {
			return fmt.Errorf("task %d: %w", r.ID, err)
		}
	}
	if err := t.ended(ends, now); err != nil {
		return err
	}
	return t.freeLanes(lanes, now)
}

// claim takes tasks for the free slots, the queues in turn, and returns them in the order in which to start them, and when a rate
// lets the next one start; zero: no task waits for a rate.
func (t *tx) claim(c *claimer, ask Claim, now time.Time) ([]jobs.Task, time.Time, error) {
	if ask.Free <= 0 || len(c.jobs) == 0 {
		return nil, time.Time{}, nil
	}
	queues, err := t.queues(c, ask)
	if err != nil || len(queues) == 0 {
		return nil, time.Time{}, err
	}
	g, err := t.openTurnstile(now)
	if err != nil {
		return nil, time.Time{}, err
	}
	all := queues
	if g != nil { // a full queue takes no share
		queues = slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return g.room(jobs.QueueTarget, queue) <= 0 })
	}
	if len(queues) > 0 {
		c.last = queues[0]
	}
	aged := c.lookForAged(ask.MaxWait, now)
	if aged {
		c.agedAt = now
	}
	if len(c.since) > 0 {
		if claimed, over, err := t.suspect(c, ask, queues, g, now); over || err != nil {
			if err != nil {
				return nil, time.Time{}, err
			}
			next, err := t.closeTurnstile(g, c, all, claimed, now)
			return claimed, next, err
		}
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
			batch, err := t.claimQueue(c, queue, free, ask, g, aged, now)
			if err != nil {
				return nil, time.Time{}, err
			}
			taken[queue] += len(batch)
			claimed = append(claimed, batch...)
		}
		if len(claimed) == ask.Free || len(queues) <= 1 {
			break
		}
	}
	if len(claimed) < ask.Free {
		c.names = nil
	}
	next, err := t.closeTurnstile(g, c, all, claimed, now)
	return claimed, next, err
}

// claimQueue takes up to free tasks of a queue, in the order in which to start them.
func (t *tx) claimQueue(c *claimer, queue string, free int, ask Claim, g *turnstile, aged bool, now time.Time) ([]jobs.Task, error) {
	if g == nil && !aged { // the usual case
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
	return t.take(c, text, append(args, int64(free), c.worker, now.Add(lease).UnixMilli(), ms, ms), lease, now)
}

// arms binds the arms of claimTasks. A job without a name binds NULL, which is equal to nothing.
func (c *claimer) arms(queue string, list []ClaimJob, more int) []any {
	args := make([]any, 0, 3*len(list)+more)
	for _, job := range list {
		args = append(args, int64(max(job.MaxAttempts, 1)), queue, nullText(job.Job))
	}
	return args
}

// take runs a claim and completes its tasks.
func (t *tx) take(c *claimer, text string, args []any, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	claimed, err := t.claimRows(text, args)
	if err != nil {
		return nil, err
	}
	for i := range claimed { // what the claim has set
		task := &claimed[i]
		task.State, task.WorkerID, task.LeaseExpiresAt, task.StartedAt, task.UpdatedAt = jobs.Running, c.worker, now.Add(lease), now, now
	}
	slices.SortFunc(claimed, func(a, b jobs.Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return claimed, nil
}

// claimRows scans by position: by name it would be a fifth of a worker's time.
func (t *tx) claimRows(text string, args []any) ([]jobs.Task, error) {
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
			&r.Losses, &r.MaxLosses, &r.Timeout, &r.KillAfter, &r.Backoff, &r.BackoffDelay, &r.BackoffMax, &r.RetryOn, &r.OutputLimit,
			&r.Path, &r.Cwd, &r.Env, &r.EnvFile, &r.InputBytes, &r.CreatedAt, &r.CreatedBy, &r.Schedule, &r.Tick, &r.Lane, &r.Depends); err != nil {
			return nil, err
		}
		claimed = append(claimed, r.task())
	}
	return claimed, rows.Err()
}

// Turn is one round of a worker's loop: finish what has ended, then claim for the slots that are free. It is one write, so that
// a worker that is busy pays for one transaction and not for two.
type Turn struct {
	Now    time.Time
	Finish []Finish
	Claim  Claim
	Look   bool // somebody else may have changed something: look for what is due, and for new queues. Else only what is known counts
}

// Turned is what a Turn did.
type Turned struct {
	Finished []Finished  // one for each Finish
	Claimed  []jobs.Task // in the order in which to start them
	Looked   bool        // it has looked for what is due, asked to or because tasks were freed
	NextDue  time.Time   // if it has looked: when something else becomes due or expires; zero: nothing is scheduled
	// NextStart is when a rate lets a task start that is due already; zero: none waits for that, or nothing was to be claimed.
	NextStart time.Time
	NextLane  time.Time // if it has looked: the same of the rate of a lane
}

// Turn takes a turn of worker w. If it finishes anything it returns when that is on the disk. It can be repeated after an error:
// a finish that was accepted stays accepted, and tasks claimed by a turn whose answer was lost show up in Beat as ghosts.
func (w *Worker) Turn(ctx context.Context, turn Turn) (Turned, error) {
	to := normal
	if len(turn.Finish) > 0 {
		to = full
	}
	var done Turned
	err := w.db.update(ctx, to, func(t *tx) error {
		done = Turned{}
		t.moved = false
		var err error
		if done.Finished, err = t.finish(w.id, turn.Finish, turn.Now); err != nil {
			return fmt.Errorf("finish tasks: %w", err)
		}
		if done.Looked = turn.Look || t.moved; done.Looked {
			w.claimer.names = nil
			if done.NextDue, done.NextLane, err = t.due(turn.Now); err != nil {
				return fmt.Errorf("promote tasks: %w", err)
			}
			if err = t.look(w.claimer); err != nil {
				return fmt.Errorf("look for suspects: %w", err)
			}
		}
		if done.Claimed, done.NextStart, err = t.claim(w.claimer, turn.Claim, turn.Now); err != nil {
			return fmt.Errorf("claim tasks: %w", err)
		}
		return nil
	})
	return done, err
}

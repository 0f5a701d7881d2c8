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

// selectSuspects lists where suspects wait that no pause holds, and since when. Index: tasks_lost.
const selectSuspects = `SELECT queue, job, updated_at FROM tasks
WHERE +state = 'pending' AND losses >= 1 AND losses >= max_losses - 1 AND finished_at IS NULL
	AND NOT EXISTS (SELECT 1 FROM pauses WHERE pauses.queue = tasks.queue) AND NOT EXISTS (SELECT 1 FROM pauses WHERE pauses.queue = '') LIMIT 100`

// claimTasks takes up to [2] tasks from the arms of all jobs (joined by UNION ALL, which SQLite merges in index order, without
// a sort, stopping at the limit) for worker [3], lease until [4], started at [5], time [6]. Returns the claimed rows in no
// order: Claim sorts them. Promise: a task goes to one caller only, and none while queue [1] is paused: a limit of 0 walks over
// nothing, however much waits. MATERIALIZED plans the subquery once. Index: pauses by its key.
const claimTasks = `WITH next AS MATERIALIZED (%s ORDER BY priority DESC, id LIMIT CASE
	WHEN EXISTS (SELECT 1 FROM pauses WHERE queue = ?) OR EXISTS (SELECT 1 FROM pauses WHERE queue = '') THEN 0 ELSE ? END)
UPDATE tasks SET state = 'running', generation_id = tasks.generation_id + 1, attempt = tasks.attempt + 1,
	max_attempts = coalesce(max_attempts, most), worker_id = ?, lease_expires_at = ?, started_at = ?, updated_at = ?, reason = NULL,
	error = NULL, result = NULL, exit_code = NULL, signal = NULL, duration = NULL, output_bytes = 0, output_truncated = 0,
	progress = NULL, cancel_requested_at = NULL, cancel_now = 0, cancel_text = NULL
FROM next WHERE tasks.id = next.id AND tasks.generation_id = next.generation_id
RETURNING tasks.id, tasks.generation_id, job, args, label, queue, tasks.priority, run_at, attempt, max_attempts, losses, max_losses,
	timeout, kill_after, backoff, backoff_delay, backoff_max, retry_on, output_limit, path, cwd, env, env_file, input_bytes,
	created_at, created_by, schedule, tick`

// selectQueues lists the queues that have pending tasks, by a loose scan: one seek each. Index: tasks_pending.
const selectQueues = `WITH RECURSIVE names (queue) AS (
	SELECT min(queue) FROM tasks WHERE state = 'pending'
	UNION ALL
	SELECT (SELECT min(queue) FROM tasks WHERE state = 'pending' AND queue > names.queue) FROM names WHERE names.queue IS NOT NULL)
SELECT queue FROM names WHERE queue IS NOT NULL`

// selectDue returns when the next scheduled or retrying task is due, and when the next task expires. Indexes: tasks_due, tasks_expiry.
// Null: none. A row of plain SQL may hold any time, 0 included.
const selectDue = `SELECT (SELECT min(run_at) FROM tasks WHERE state = 'scheduled' OR state = 'retrying'),
	(SELECT min(expires_at) FROM tasks WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL)`

// promoteTasks makes tasks pending that are due at [2]; time [1]. Index: tasks_due.
const promoteTasks = `UPDATE tasks SET state = 'pending', generation_id = generation_id + 1, updated_at = ? WHERE id IN (
	SELECT id FROM tasks WHERE (state = 'scheduled' OR state = 'retrying') AND run_at <= ? ORDER BY run_at LIMIT 1000)`

// expireTasks cancels tasks that have not started by [3]; times [1] and [2]. Returns their queues. Index: tasks_expiry.
const expireTasks = `UPDATE tasks SET state = 'cancelled', generation_id = generation_id + 1, reason = 'expired', error = 'not started in time',
	finished_at = ?, updated_at = ? WHERE id IN (
	SELECT id FROM tasks WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL AND expires_at <= ?
	ORDER BY expires_at LIMIT 1000) RETURNING queue`

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
}

// claimer finds the tasks of one worker. It is used by one goroutine.
type claimer struct {
	worker string
	jobs   []ClaimJob
	text   string               // claimTasks with an arm for each job
	alone  string               // the same for suspects
	last   string               // the queue that was served first the last time
	since  map[string]time.Time // the queues in which suspects of these jobs waited when that was last looked at, and since when
	names  []string             // the queues that had pending tasks when they were last listed; nil: list them
}

func newClaimer(worker string, jobs []ClaimJob) *claimer {
	text := func(arm string) string {
		return fmt.Sprintf(claimTasks, strings.TrimSuffix(strings.Repeat(arm+" UNION ALL ", len(jobs)), " UNION ALL "))
	}
	return &claimer{worker: worker, jobs: jobs, text: text(claimArm), alone: text(suspectArm)}
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
func (t *tx) suspect(c *claimer, ask Claim, queues []string, now time.Time) (claimed []jobs.Task, over bool, err error) {
	for _, queue := range queues {
		since, waits := c.since[queue]
		if most, limited := ask.Limit[queue]; !waits || limited && most <= 0 {
			continue
		}
		if !ask.Idle {
			over = over || now.Sub(since) >= suspectPatience
			continue
		}
		if claimed, err = t.claimQueue(c, c.alone, queue, 1, ask.Lease, now); len(claimed) > 0 || err != nil {
			return claimed, true, err
		}
		delete(c.since, queue)
	}
	return nil, over, nil
}

// dueMost is how many thousands of tasks become pending or expire in one turn: others wait for the lock.
const dueMost = 10

// due makes pending what is due and cancels what has expired at now. It returns when to do it again; zero: nothing waits.
func (t *tx) due(now time.Time) (time.Time, error) {
	for range dueMost {
		var due, expiry sql.NullInt64
		if err := t.scan(selectDue, nil, &due, &expiry); err != nil {
			return time.Time{}, err
		}
		ms := now.UnixMilli()
		isDue, isOver := due.Valid && due.Int64 <= ms, expiry.Valid && expiry.Int64 <= ms
		if isOver { // before it could be claimed
			var queues []string
			if err := t.list(&queues, expireTasks, ms, ms, ms); err != nil {
				return time.Time{}, err
			}
			counts := map[count]int{}
			for _, queue := range queues {
				counts[count{queue, jobs.Cancelled}]++
			}
			if err := t.count(counts, now); err != nil {
				return time.Time{}, err
			}
		}
		if isDue {
			if _, err := t.exec(promoteTasks, ms, ms); err != nil {
				return time.Time{}, err
			}
		}
		if isDue || isOver {
			continue
		}
		if !due.Valid || expiry.Valid && expiry.Int64 < due.Int64 {
			due = expiry
		}
		return number(due.Int64).time(), nil
	}
	return now, nil // there is more
}

// claim takes tasks for the free slots, the queues in turn, and returns them in the order in which to start them.
func (t *tx) claim(c *claimer, ask Claim, now time.Time) ([]jobs.Task, error) {
	if ask.Free <= 0 || len(c.jobs) == 0 {
		return nil, nil
	}
	queues, err := t.queues(c, ask)
	if err != nil || len(queues) == 0 {
		return nil, err
	}
	c.last = queues[0]
	if len(c.since) > 0 {
		if claimed, over, err := t.suspect(c, ask, queues, now); over || err != nil {
			return claimed, err
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
			batch, err := t.claimQueue(c, c.text, queue, free, ask.Lease, now)
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
		if len(claimed) == ask.Free || len(queues) == 1 {
			break
		}
	}
	if len(claimed) < ask.Free {
		c.names = nil
	}
	return claimed, nil
}

// queues returns the queues to serve, the one after the last first.
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

func (t *tx) claimQueue(c *claimer, text, queue string, free int, lease time.Duration, now time.Time) ([]jobs.Task, error) {
	args := make([]any, 0, 3*len(c.jobs)+6)
	for _, job := range c.jobs {
		args = append(args, int64(max(job.MaxAttempts, 1)), queue, job.Job)
	}
	ms := now.UnixMilli()
	args = append(args, queue, int64(free), c.worker, now.Add(lease).UnixMilli(), ms, ms)
	claimed, err := t.claimRows(text, args, free)
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
			&r.Losses, &r.MaxLosses, &r.Timeout, &r.KillAfter, &r.Backoff, &r.BackoffDelay, &r.BackoffMax, &r.RetryOn, &r.OutputLimit,
			&r.Path, &r.Cwd, &r.Env, &r.EnvFile, &r.InputBytes, &r.CreatedAt, &r.CreatedBy, &r.Schedule, &r.Tick); err != nil {
			return nil, err
		}
		if claimed == nil { // a task is large: growing to a hundred would copy each twice
			claimed = make([]jobs.Task, 0, min(most, 100))
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
	NextDue  time.Time   // with Look: when something else becomes due or expires; zero: nothing is scheduled
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
		var err error
		if done.Finished, err = t.finish(w.id, turn.Finish, turn.Now); err != nil {
			return fmt.Errorf("finish tasks: %w", err)
		}
		if turn.Look {
			w.claimer.names = nil
			if done.NextDue, err = t.due(turn.Now); err != nil {
				return fmt.Errorf("promote tasks: %w", err)
			}
			if err = t.look(w.claimer); err != nil {
				return fmt.Errorf("look for suspects: %w", err)
			}
		}
		if done.Claimed, err = t.claim(w.claimer, turn.Claim, turn.Now); err != nil {
			return fmt.Errorf("claim tasks: %w", err)
		}
		return nil
	})
	return done, err
}

package db

import (
	"context"
	"math"
	"slices"
	"time"

	"example.com/runner/jobs"
)

const limitColumns = `kind, name, running, rate, per, burst, level, filled_at, due_at, updated_at`

// selectTurnstile reads the limits of queues and jobs; selectLimit one limit; selectLimits all of them, for people. Primary key.
const (
	selectTurnstile = `SELECT ` + limitColumns + ` FROM limits WHERE kind = 'queue' OR kind = 'job'`
	selectLimit     = `SELECT ` + limitColumns + ` FROM limits WHERE kind = ? AND name = ?`
	selectLimits    = `SELECT ` + limitColumns + ` FROM limits ORDER BY kind, name`
)

// countStarted counts what runs, by queue and job. Index: tasks_running; the rows are read, but they are few.
const countStarted = `SELECT queue, job, count(*) AS n FROM tasks WHERE state = 'running' GROUP BY queue, job`

// saveBucket keeps what is left of the rate of limit [3], [4]: level [1] at [2].
const saveBucket = `UPDATE limits SET level = ?, filled_at = ? WHERE kind = ? AND name = ?`

// setLimit adds a limit or replaces one.
const setLimit = `INSERT INTO limits (kind, name, running, rate, per, burst, level, filled_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET running = excluded.running, rate = excluded.rate, per = excluded.per, burst = excluded.burst,
	level = excluded.level, filled_at = excluded.filled_at, updated_at = excluded.updated_at`

const removeLimit = `DELETE FROM limits WHERE kind = ? AND name = ?`

// setLaneDue says when the rate of lane [2] lets its next task start [1]; NULL: nothing waits for it.
const setLaneDue = `UPDATE limits SET due_at = ? WHERE kind = 'lane' AND name = ?`

// selectFreeLanes lists lanes whose rate lets a task start at [1]. Index: limits_due.
const selectFreeLanes = `SELECT name FROM limits WHERE due_at <= ? LIMIT 1000`

// somePending tells whether a task of queue [1] is pending, and somePendingJob of queue [1] and job [2]. Index: tasks_pending.
const (
	somePending    = `SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 'pending' AND queue = ?)`
	somePendingJob = `SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 'pending' AND queue = ? AND job = ?)`
)

type limitRow struct {
	Kind      string `db:"kind"`
	Name      string `db:"name"`
	Running   number `db:"running"`
	Rate      number `db:"rate"`
	Per       number `db:"per"`
	Burst     number `db:"burst"`
	Level     int64  `db:"level"`
	FilledAt  int64  `db:"filled_at"`
	DueAt     number `db:"due_at"`
	UpdatedAt number `db:"updated_at"`
}

func (r *limitRow) limit() jobs.Limit {
	return jobs.Limit{Target: jobs.Target{Kind: r.Kind, Name: r.Name}, Running: int(r.Running), Rate: int(r.Rate), Per: r.Per.duration(), Burst: int(r.Burst)}
}

func (r *limitRow) bucket() jobs.Bucket {
	return jobs.Bucket{Level: r.Level, At: time.UnixMilli(r.FilledAt)}
}

// turnstile is what limits let pass in one claim. It is read and written in the claim's transaction, so no two workers ever pass it
// at the same time. A nil turnstile lets everything pass: there are no limits.
type turnstile struct {
	limits map[jobs.Target]*passage
}

// passage is one limit of a turnstile.
type passage struct {
	limit  jobs.Limit
	bucket jobs.Bucket
	free   int       // tasks that may run beside those that do
	starts int       // that the rate lets pass now
	next   time.Time // when the rate lets the next one pass, if none now
	taken  int
}

func (p *passage) room() int { return min(p.free, p.starts) - p.taken }

// openTurnstile reads the limits of queues and jobs, and what runs if one of them asks for that.
func (t *tx) openTurnstile(now time.Time) (*turnstile, error) {
	uses, err := t.uses()
	if err != nil || !uses.limits {
		return nil, err
	}
	var rows []limitRow
	if err := t.list(&rows, selectTurnstile); err != nil {
		return nil, err
	}
	g := &turnstile{limits: make(map[jobs.Target]*passage, len(rows))}
	counted := false
	for i := range rows {
		p := &passage{limit: rows[i].limit(), bucket: rows[i].bucket(), free: math.MaxInt}
		p.starts, p.next = p.limit.Starts(p.bucket, now)
		if p.limit.Running > 0 {
			p.free, counted = p.limit.Running, true
		}
		g.limits[p.limit.Target] = p
	}
	if !counted {
		return g, nil
	}
	running, err := t.started()
	for _, r := range running {
		for _, target := range []jobs.Target{{Kind: jobs.QueueTarget, Name: r.Queue}, {Kind: jobs.JobTarget, Name: r.Job}} {
			if p := g.limits[target]; p != nil && p.limit.Running > 0 {
				p.free -= r.N
			}
		}
	}
	return g, err
}

type startedRow struct {
	Queue string `db:"queue"`
	Job   string `db:"job"`
	N     int    `db:"n"`
}

func (t *tx) started() ([]startedRow, error) {
	var rows []startedRow
	return rows, t.list(&rows, countStarted)
}

// room is how many tasks of a target may still start.
func (g *turnstile) room(kind, name string) int {
	if g == nil {
		return math.MaxInt
	}
	if p := g.limits[jobs.Target{Kind: kind, Name: name}]; p != nil {
		return p.room()
	}
	return math.MaxInt
}

// open returns the jobs of list, without the names of those that may not start.
func (g *turnstile) open(list []ClaimJob) []ClaimJob {
	if g == nil {
		return list
	}
	open := slices.Clone(list)
	for i, job := range open {
		if g.room(jobs.JobTarget, job.Job) <= 0 {
			open[i].Job = ""
		}
	}
	return open
}

// take counts tasks that were claimed from a queue.
func (g *turnstile) take(queue string, claimed []jobs.Task) {
	if g == nil {
		return
	}
	for i := range claimed {
		for _, target := range []jobs.Target{{Kind: jobs.QueueTarget, Name: queue}, {Kind: jobs.JobTarget, Name: claimed[i].Job}} {
			if p := g.limits[target]; p != nil {
				p.taken++
			}
		}
	}
}

// choose returns the first of the candidates that the limits of their jobs let start.
func (g *turnstile) choose(from []candidate, most int) []candidate {
	var chosen []candidate
	taken := map[string]int{}
	for _, one := range from {
		if len(chosen) < most && taken[one.Job] < g.room(jobs.JobTarget, one.Job) {
			taken[one.Job]++
			chosen = append(chosen, one)
		}
	}
	return chosen
}

// closeTurnstile writes what the claim has taken of the rates, those of lanes too. It returns when a rate lets the next task start that
// is waiting for that.
func (t *tx) closeTurnstile(g *turnstile, c *claimer, queues []string, claimed []jobs.Task, now time.Time) (time.Time, error) {
	var next time.Time
	if g == nil {
		return next, nil
	}
	for target, p := range g.limits {
		if p.limit.Rate == 0 {
			continue
		}
		if p.taken > 0 {
			p.bucket = p.limit.Take(p.bucket, p.taken, now)
			if err := t.saveBucket(target, p.bucket); err != nil {
				return next, err
			}
			p.starts, p.next = p.limit.Starts(p.bucket, now)
		}
		if p.starts > 0 || !next.IsZero() && !p.next.Before(next) {
			continue
		}
		waits, err := t.waitsAt(target, c, queues)
		if err != nil {
			return next, err
		}
		if waits {
			next = p.next
		}
	}
	for i := range claimed {
		if lane := claimed[i].Lane; lane != "" {
			if err := t.takeLaneRate(lane, now); err != nil {
				return next, err
			}
		}
	}
	return next, nil
}

func (t *tx) saveBucket(target jobs.Target, b jobs.Bucket) error {
	_, err := t.exec(saveBucket, b.Level, b.At.UnixMilli(), target.Kind, target.Name)
	return err
}

// waitsAt says whether a pending task that this worker could run waits for a closed limit.
func (t *tx) waitsAt(target jobs.Target, c *claimer, queues []string) (bool, error) {
	for _, queue := range queues {
		text, args := somePending, []any{queue}
		switch {
		case target.Kind == jobs.QueueTarget && target.Name != queue:
			continue
		case target.Kind == jobs.JobTarget:
			if !slices.ContainsFunc(c.jobs, func(job ClaimJob) bool { return job.Job == target.Name }) {
				return false, nil
			}
			text, args = somePendingJob, []any{queue, target.Name}
		}
		var some bool
		if err := t.scan(text, args, &some); err != nil || some {
			return some, err
		}
	}
	return false, nil
}

func (t *tx) limitOf(target jobs.Target) (*limitRow, error) {
	var rows []limitRow
	if err := t.list(&rows, selectLimit, target.Kind, target.Name); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// laneRate returns when the rate of a lane lets a task start; zero: now.
func (t *tx) laneRate(lane string, now time.Time) (time.Time, error) {
	uses, err := t.uses()
	if err != nil || !uses.limits {
		return time.Time{}, err
	}
	r, err := t.limitOf(jobs.Target{Kind: jobs.LaneTarget, Name: lane})
	if err != nil || r == nil {
		return time.Time{}, err
	}
	_, next := r.limit().Starts(r.bucket(), now)
	return next, nil
}

// laneOpen says whether the rate of a lane that nobody has lets a task start, and keeps when it will if one waits for that.
func (t *tx) laneOpen(lane string, waits bool, now time.Time) (bool, error) {
	uses, err := t.uses()
	if err != nil || !uses.limits {
		return true, err
	}
	r, err := t.limitOf(jobs.Target{Kind: jobs.LaneTarget, Name: lane})
	if err != nil || r == nil {
		return true, err
	}
	_, next := r.limit().Starts(r.bucket(), now)
	if !waits {
		next = time.Time{}
	}
	if r.DueAt.time().Equal(next) {
		return next.IsZero(), nil
	}
	t.moved = true // there is a new time to wait for
	_, err = t.exec(setLaneDue, nullTime(next), lane)
	return next.IsZero(), err
}

// takeLaneRate counts a start in a lane. After a loss there may be none left: then one is owed.
func (t *tx) takeLaneRate(lane string, now time.Time) error {
	target := jobs.Target{Kind: jobs.LaneTarget, Name: lane}
	r, err := t.limitOf(target)
	if err != nil || r == nil {
		return err
	}
	return t.saveBucket(target, r.limit().Take(r.bucket(), 1, now))
}

// freeDueLanes looks at the lanes whose rate lets a task start now.
func (t *tx) freeDueLanes(now time.Time) error {
	var lanes []string
	if err := t.list(&lanes, selectFreeLanes, now.UnixMilli()); err != nil {
		return err
	}
	for _, lane := range lanes {
		if _, err := t.exec(setLaneDue, nil, lane); err != nil {
			return err
		}
		if err := t.freeLane(lane, now); err != nil {
			return err
		}
	}
	return nil
}

// LimitStat is a limit and how it stands.
type LimitStat struct {
	jobs.Limit
	InUse     int       // tasks of the target that run
	NextAt    time.Time // when the rate lets the next task start; zero: now, or there is no rate
	UpdatedAt time.Time
}

// SetLimit adds a limit, or replaces the one of its target. Setting the same one again changes nothing. It holds for the next claim.
func (d *DB) SetLimit(ctx context.Context, l jobs.Limit, now time.Time) error {
	return d.update(ctx, full, func(t *tx) error {
		old, err := t.limitOf(l.Target)
		if err != nil || old != nil && old.limit() == l {
			return err
		}
		b := l.Full(now)
		if old != nil && l.Rate > 0 {
			b = l.Carry(old.limit(), old.bucket(), now)
		}
		t.used.known = false
		_, err = t.exec(setLimit, l.Kind, l.Name, nullNumber(l.Running), nullNumber(l.Rate), nullNumber(millis(l.Per)), nullNumber(l.Burst),
			b.Level, now.UnixMilli(), now.UnixMilli())
		if err == nil && l.Kind == jobs.LaneTarget {
			err = t.freeLane(l.Name, now)
		}
		return err
	})
}

// RemoveLimit removes the limit of a target. It returns false if there is none.
func (d *DB) RemoveLimit(ctx context.Context, target jobs.Target, now time.Time) (bool, error) {
	removed := false
	err := d.update(ctx, full, func(t *tx) error {
		n, err := t.exec(removeLimit, target.Kind, target.Name)
		removed, t.used.known = n > 0, false
		if err == nil && removed && target.Kind == jobs.LaneTarget {
			err = t.freeLane(target.Name, now)
		}
		return err
	})
	return removed, err
}

// Limits lists all limits, by kind and name.
func (d *DB) Limits(ctx context.Context, now time.Time) ([]LimitStat, error) {
	var rows []limitRow
	if err := d.read.SelectContext(ctx, &rows, selectLimits); err != nil || len(rows) == 0 {
		return nil, explain(err, d.path)
	}
	var running []startedRow
	if err := d.read.SelectContext(ctx, &running, countStarted); err != nil {
		return nil, explain(err, d.path)
	}
	stats := make([]LimitStat, len(rows))
	for i := range rows {
		s := LimitStat{Limit: rows[i].limit(), UpdatedAt: rows[i].UpdatedAt.time()}
		_, s.NextAt = s.Starts(rows[i].bucket(), now)
		for _, r := range running {
			if s.Kind == jobs.QueueTarget && s.Name == r.Queue || s.Kind == jobs.JobTarget && s.Name == r.Job {
				s.InUse += r.N
			}
		}
		if s.Kind == jobs.LaneTarget {
			if err := d.read.GetContext(ctx, &s.InUse, laneRunning, s.Name); err != nil {
				return nil, explain(err, d.path)
			}
		}
		stats[i] = s
	}
	return stats, nil
}

// laneRunning counts what runs in lane [1]: one task or none. Index: tasks_lane.
const laneRunning = `SELECT count(*) FROM tasks WHERE lane = ? AND (state = 'pending' OR state = 'running' OR state = 'retrying') AND state = 'running'`

package db

import (
	"math"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// Admission decides which pending tasks a claim may start. It admits no task of
// a paused queue, and no more tasks than the limits of the queue, the job and
// the whole database allow. It ignores lanes, since a task that waits for its
// lane isn't pending (see lane.go).
//
// A claim reads all pauses and limits once (readAdmission), counts in memory
// what it takes (count), and stores the used rates at its end (saveAdmission).
// So the number of SQL statements doesn't depend on the number of tasks, except
// for lanes with a rate. Without pauses and limits the admission is empty, and
// the claim has only read which features are in use.
//
// Invariants:
//   - The reads, the claim and the writes are one transaction, so two workers
//     never use the same capacity.
//   - Limits on running tasks have no stored counter. The claim counts the
//     running tasks, so a crash can't leave a wrong number behind.
//   - Rates are stored as token buckets (bucket.go). A start takes a token even
//     if the worker dies before it runs the task.
//   - When only a rate keeps a task from starting, saveAdmission returns the
//     time at which it may start, and the worker wakes up by then.

// countStarted counts the running tasks by queue and job. It reads each of
// them, but they are few. Index: tasks_running.
var countStarted = query(`SELECT queue, job, count(*) AS n FROM {tasks} WHERE state = 'running' GROUP BY queue, job`)

// These find a pending task of queue [1], and of job [2] in that queue. Index:
// tasks_pending.
var (
	somePending    = query(`SELECT EXISTS (SELECT 1 FROM {tasks} WHERE state = 'pending' AND queue = ?)`)
	somePendingJob = query(`SELECT EXISTS (SELECT 1 FROM {tasks} WHERE state = 'pending' AND queue = ? AND job = ?)`)
)

// selectPaused lists the paused queues; the empty name stands for all.
var selectPaused = query(`SELECT queue FROM {pauses}`)

type admission struct {
	restricts bool // whether anything may hold tasks back: pauses, limits, or batches that must fill first
	paused    []string
	limits    map[Target]*limitState
	// For a queue and job whose last batch isn't full yet: how many tasks of
	// the full ones the claim may still take.
	filling map[part]int
}

// limitState is a limit with its use, and what a claim adds to it.
type limitState struct {
	LimitStatus
	bucket  bucket
	starts  int // starts that the rate allows now
	taken   int // tasks that this claim has taken
	started int // starts of this claim; a batch counts as one start
}

// limitStates returns limits by their targets. running counts the running
// tasks.
func limitStates(rows []limitRow, running []countRow, now time.Time) map[Target]*limitState {
	states := make(map[Target]*limitState, len(rows))
	for i := range rows {
		s := &limitState{LimitStatus: LimitStatus{Limit: rows[i].limit(), UpdatedAt: rows[i].UpdatedAt.time()},
			bucket: rows[i].bucket()}
		s.starts, s.NextAt = s.bucket.starts(s.Limit, now)
		states[s.Target] = s
	}

	for _, r := range running {
		for _, target := range targetsOf(r.Queue, r.Job) {
			if s := states[target]; s != nil {
				s.InUse += r.N
			}
		}
	}

	return states
}

// free returns how many more tasks may run. The tasks that this claim has taken
// run, too.
func (s *limitState) free() int {
	if s.Running == 0 {
		return math.MaxInt
	}
	return s.Running - s.InUse - s.taken
}

// targetsOf returns the targets whose limits apply to a task, but for its lane.
func targetsOf(queue, job string) [3]Target {
	return [3]Target{{Kind: AllTarget}, {Kind: QueueTarget, Name: queue}, {Kind: JobTarget, Name: job}}
}

func (t *tx) readAdmission(now time.Time) (*admission, error) {
	features, err := t.features()
	g := &admission{restricts: features.pauses || features.limits}
	if err != nil {
		return nil, err
	}
	if features.pauses {
		if err := t.list(&g.paused, selectPaused); err != nil {
			return nil, err
		}
	}
	if features.limits {
		err = t.readLimits(g, now)
	}

	return g, err
}

func (t *tx) readLimits(g *admission, now time.Time) error {
	var rows []limitRow
	if err := t.list(&rows, selectAdmission); err != nil {
		return err
	}

	var running []countRow
	var err error
	if slices.ContainsFunc(rows, func(r limitRow) bool { return r.Running > 0 }) {
		err = t.list(&running, countStarted)
	}

	g.limits = limitStates(rows, running, now)
	return err
}

func (g *admission) isPaused(queue string) bool {
	return slices.Contains(g.paused, pauseKey(AllQueues)) || slices.Contains(g.paused, queue)
}

// admits reports whether one more task of a queue and a job may start; any job
// if it's empty. joins says that the task would join a batch, which the rates
// have counted already.
func (g *admission) admits(queue, job string, joins bool) bool {
	full, filling := g.filling[part{queue, job}]
	return (!filling || full > 0) && g.permits(queue, job, joins)
}

// permits is admits without the batches, which a suspect doesn't join.
func (g *admission) permits(queue, job string, joins bool) bool {
	if g.isPaused(queue) {
		return false
	}
	for _, target := range targetsOf(queue, job) {
		if p := g.limits[target]; p != nil && (p.free() <= 0 || !joins && p.started >= p.starts) {
			return false
		}
	}

	return true
}

// openQueues returns the queues of which a task may start. The claim shares its
// free slots among them.
func (g *admission) openQueues(queues []string) []string {
	if !g.restricts {
		return queues
	}
	return slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return !g.admits(queue, "", false) })
}

// capacity returns how many more tasks of a target may start.
func (g *admission) capacity(kind TargetKind, name string) int {
	p := g.limits[Target{Kind: kind, Name: name}]
	if p == nil {
		return math.MaxInt
	}
	return min(p.free(), p.starts-p.started)
}

// capacityOf returns how many more tasks of a job in a queue may start by the
// limit and the batches of the job.
func (g *admission) capacityOf(queue, job string) int {
	n := g.capacity(JobTarget, job)
	if full, filling := g.filling[part{queue, job}]; filling {
		n = min(n, full)
	}
	return n
}

// count counts a task that the claim takes against its limits.
func (g *admission) count(queue, job string, joins bool) {
	for _, target := range targetsOf(queue, job) {
		if p := g.limits[target]; p != nil {
			p.taken++
			if !joins {
				p.started++
			}
		}
	}
	if at := (part{queue, job}); g.filling[at] > 0 {
		g.filling[at]--
	}
}

// isUsedUp reports whether the claim has used up a limit on running tasks.
func (g *admission) isUsedUp() bool {
	for _, p := range g.limits {
		if p.taken > 0 && p.free() <= 0 {
			return true
		}
	}
	return false
}

// saveAdmission stores the rates that a claim has used, those of lanes, too. It
// returns the time at which a rate lets the next waiting task start.
func (t *tx) saveAdmission(g *admission, c *claimer, queues []string, claimed []jobs.Task, now time.Time) (time.Time, error) {
	var next time.Time
	if g.limits == nil {
		return next, nil
	}

	for target, p := range g.limits {
		if p.Rate == 0 {
			continue
		}
		if p.started > 0 {
			p.bucket = p.bucket.take(p.Limit, p.started, now)
			if err := t.saveBucket(target, p.bucket); err != nil {
				return next, err
			}
			p.starts, p.NextAt = p.bucket.starts(p.Limit, now)
		}
		if p.NextAt.IsZero() || !next.IsZero() && !p.NextAt.Before(next) {
			continue
		}

		waits, err := t.waitsAt(target, g, c, queues)
		if err != nil {
			return next, err
		}
		if waits {
			next = p.NextAt
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

// waitsAt reports whether the limit of a target blocks a pending task that this
// worker can run.
func (t *tx) waitsAt(target Target, g *admission, c *claimer, queues []string) (bool, error) {
	for _, queue := range queues {
		text, args := somePending, []any{queue}
		switch {
		case g.isPaused(queue), target.Kind == QueueTarget && target.Name != queue:
			continue
		case target.Kind == JobTarget:
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

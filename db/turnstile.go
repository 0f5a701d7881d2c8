package db

import (
	"math"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// countStarted counts what runs, by queue and job. Index: tasks_running; the rows are read, but they are few.
const countStarted = `SELECT queue, job, count(*) AS n FROM tasks WHERE state = 'running' GROUP BY queue, job`

// somePending tells whether a task of queue [1] is pending, and somePendingJob of queue [1] and job [2]. Index: tasks_pending.
const (
	somePending    = `SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 'pending' AND queue = ?)`
	somePendingJob = `SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 'pending' AND queue = ? AND job = ?)`
)

// selectPaused lists the queues that are paused; the empty name is all of them.
const selectPaused = `SELECT queue FROM pauses`

// turnstile is what pauses and limits let pass in one claim. It is read and written in the claim's transaction, so no two workers ever
// pass it at the same time. A nil turnstile lets everything pass: there are neither.
type turnstile struct {
	paused []string
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

// openTurnstile reads the pauses, the limits of queues and jobs, and what runs if one of them asks for that.
func (t *tx) openTurnstile(now time.Time) (*turnstile, error) {
	uses, err := t.uses()
	if err != nil || !uses.pauses && !uses.limits {
		return nil, err
	}
	g := &turnstile{}
	if uses.pauses {
		if err := t.list(&g.paused, selectPaused); err != nil {
			return nil, err
		}
	}
	if uses.limits {
		err = t.openLimits(g, now)
	}
	return g, err
}

func (t *tx) openLimits(g *turnstile, now time.Time) error {
	var rows []limitRow
	if err := t.list(&rows, selectTurnstile); err != nil {
		return err
	}
	g.limits = make(map[jobs.Target]*passage, len(rows))
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
		return nil
	}
	var running []countRow
	err := t.list(&running, countStarted)
	for _, r := range running {
		for _, target := range []jobs.Target{{Kind: jobs.QueueTarget, Name: r.Queue}, {Kind: jobs.JobTarget, Name: r.Job}} {
			if p := g.limits[target]; p != nil && p.limit.Running > 0 {
				p.free -= r.N
			}
		}
	}
	return err
}

// awake returns the queues that are not paused.
func (g *turnstile) awake(queues []string) []string {
	switch {
	case g == nil || len(g.paused) == 0:
		return queues
	case slices.Contains(g.paused, AllQueues):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return slices.Contains(g.paused, queue) })
}

// roomy returns the queues that are not full: a full one takes no share of the slots.
func (g *turnstile) roomy(queues []string) []string {
	if g == nil || len(g.limits) == 0 {
		return queues
	}
	return slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return g.room(jobs.QueueTarget, queue) <= 0 })
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

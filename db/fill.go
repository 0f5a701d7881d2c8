package db

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// The tasks of a batch share a slot. A claim first takes one task for each free slot, and then further tasks for the slots of jobs that run
// in batches. A job may let its tasks wait until a batch is full (ClaimJob.Wait). A rate limit counts a batch as one start.

// part identifies the tasks of one job in one queue.
type part struct{ queue, job string }

// The function "only" returns a copy of the list in which all jobs except list[at] are empty. A claim with this copy takes only tasks of
// the job list[at].
func only(list []ClaimJob, at int) []ClaimJob {
	one := make([]ClaimJob, len(list))
	one[at] = list[at]
	return one
}

// readFilling finds the tasks that wait until their batch is full. If tasks of a job in a queue wait, the claim may take only the full
// batches of this job and queue, and readFilling stores the number of tasks in these batches in g.filling. It returns the time at
// which the first of the waiting tasks stops waiting, or zero if no task waits.
//
// For each job in a queue it reads the first pending tasks, at most as many as fill the batches of all free slots. The tasks after the last
// full batch wait. They stop waiting when the oldest of them has waited for the time ClaimJob.Wait of the job.
func (t *tx) readFilling(g *admission, c *claimer, queues []string, ask Claim, now time.Time) (next time.Time, err error) {
	for i, job := range c.jobs {
		if job.Wait <= 0 || job.Batch <= 1 {
			continue
		}
		for _, queue := range queues {
			var first []candidate
			if err := t.list(&first, c.peek, append(c.jobArgs(queue, only(c.jobs, i), 1), int64(ask.Free*job.Batch))...); err != nil {
				return next, err
			}
			rest := first[len(first)-len(first)%job.Batch:]
			if len(rest) == 0 {
				continue
			}
			oldest := slices.MinFunc(rest, func(a, b candidate) int { return cmp.Compare(a.RunAt, b.RunAt) })
			until := time.UnixMilli(oldest.RunAt).Add(job.Wait)
			if !until.After(now) {
				continue
			}
			if g.filling == nil {
				g.restricts, g.filling = true, map[part]int{}
			}
			g.filling[part{queue, job.Job}] = len(first) - len(rest)
			if next.IsZero() || until.Before(next) {
				next = until
			}
		}
	}
	return next, nil
}

// fillBatches claims further tasks for those slots of a claim whose job runs in batches. It returns all claimed tasks.
func (t *tx) fillBatches(c *claimer, claimed []jobs.Task, ask Claim, g *admission, now time.Time) ([]jobs.Task, error) {
	slots := map[ClaimJob]map[string]int{} // number of slots by job and queue
	for i := range claimed {
		at := slices.IndexFunc(c.jobs, func(j ClaimJob) bool { return j.Job == claimed[i].Job })
		if job := c.jobs[at]; job.Batch > 1 {
			if slots[job] == nil {
				slots[job] = map[string]int{}
			}
			slots[job][claimed[i].Queue]++
		}
	}
	g.fills = true // the rate limits have already counted the batches that the next tasks join as starts
	for i, job := range c.jobs {
		for _, queue := range slices.Sorted(maps.Keys(slots[job])) {
			n := slots[job][queue]
			var batch []jobs.Task
			if more := min(n*(job.Batch-1), g.capacity(jobs.AllTarget, "")); more > 0 {
				var err error
				if batch, err = t.claimQueue(c, only(c.jobs, i), queue, more, ask, g, false, now); err != nil {
					return nil, err
				}
			}
			claimed = append(claimed, batch...)
			g.countCalls(queue, job, n, n+len(batch))
		}
	}
	return claimed, nil
}

// countCalls corrects the number of starts in the rate limits after a claim has filled the batches of a job in a queue. Before it filled
// the batches, the claim counted one start for each task. But these tasks may share batches, and a batch counts as one start. The parameter
// "first" is the number of tasks that the claim took before it filled the batches. The parameter "all" is the number of tasks that the
// claim took in total.
func (g *admission) countCalls(queue string, job ClaimJob, first, all int) {
	saved := first - (all+job.Batch-1)/job.Batch
	for _, target := range targetsOf(queue, job.Job) {
		if p := g.limits[target]; p != nil {
			p.started -= saved
			p.saved = p.saved || saved > 0
		}
	}
}

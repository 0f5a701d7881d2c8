package harness

import (
	"slices"
)

func (r *replay) claimed(t *taskHistory, e event) {
	r.claims++
	r.started = append(r.started, e.at)
	if e.attempt != e.oldAttempt+1 || e.losses != e.oldLosses || e.attempt > e.maxAttempts {
		r.violation("I5", e.id, "claimed as attempt %d of %d with %d losses, after attempt %d with %d losses",
			e.attempt, e.maxAttempts, e.losses, e.oldAttempt, e.oldLosses)
	}

	c := &claim{generation: e.generation, worker: e.worker, claimedAt: e.at, began: e.began, leaseEnd: e.lease, leaseWritten: e.at}
	t.claims = append(t.claims, c)
	for _, id := range t.after {
		if p := r.task(id); !p.completed {
			r.violation("I12", e.id, "claimed before its dependency completed: task %d is %s", id, p.state)
		}
	}

	for _, id := range t.afterAny {
		if p := r.task(id); !p.completed && !p.failed {
			r.violation("I12", e.id, "claimed before its dependency finished: task %d is %s", id, p.state)
		}
	}

	w := r.workers[e.worker]
	if w == nil {
		r.violation("I3", e.id, "claimed by unknown worker %s", e.worker)
		return
	}

	r.checkLeaseLength(w, e)
	if !slices.Contains(w.jobs, t.job) {
		r.violation("I6", e.id, "job %s was claimed by a worker with the jobs %v", t.job, w.jobs)
	}

	for id, other := range w.running {
		if other.claims[len(other.claims)-1].revoked {
			continue // a worker whose claim was revoked may claim other tasks before another worker records the loss
		}
		if t.suspect() || other.suspect() {
			r.violation("I5", e.id, "runs with %d of %d losses on the same worker as task %d with %d of %d, and one of them is suspect",
				t.losses, t.maxLosses, id, other.losses, other.maxLosses)
		}
	}

	w.running[t.id] = t
	t.worker = e.worker
	r.claimRow = append(r.claimRow, t)
}

// checkOrder checks that a worker has claimed a queue's tasks in the right
// order (I6): no pending task of the queue comes before a claimed one. ahead
// has the events that follow these claims.
func (r *replay) checkOrder(ahead []event) {
	if len(r.claimRow) == 0 {
		return
	}

	worst, w := r.claimRow[0], r.workers[r.claimRow[0].worker]
	for _, t := range r.claimRow {
		if t.precedes(worst) {
			continue
		}
		worst = t
	}

	for _, p := range r.pending {
		if w != nil && p.queue == worst.queue && slices.Contains(w.jobs, p.job) && p.suspect() == worst.suspect() && p.precedes(worst) &&
			!r.concurrent(p, worst.lastClaim(), ahead) {
			r.violation("I6", worst.id, "claimed with priority %d while task %d was pending in queue %s with priority %d",
				worst.priority, p.id, p.queue, p.priority)
			break
		}
	}

	r.claimRow = nil
}

// precedes reports whether t must be claimed before another task of its queue.
func (t *taskHistory) precedes(other *taskHistory) bool {
	return t.priority > other.priority || t.priority == other.priority && t.id < other.id
}

// checkLeaseLength checks that a lease isn't longer than the lease duration
// that its worker has registered.
func (r *replay) checkLeaseLength(w *workerHistory, e event) {
	if e.lease-e.at > w.leaseLength+50+r.clockDrift {
		r.violation("I7", e.id, "has a lease of %d ms; leases of its worker have %d ms", e.lease-e.at, w.leaseLength)
	}
}

func (r *replay) renew(c *claim, e event) {
	c.leaseEnd, c.leaseWritten = e.lease, e.at
	if w := r.workers[e.worker]; w != nil {
		r.checkLeaseLength(w, e)
	}
	r.heartbeats = append(r.heartbeats, e)
}

// revoke checks a revocation. Another worker revokes the claim of a hung worker
// before it takes the task.
func (r *replay) revoke(c *claim, e event) {
	w := r.workers[e.worker]
	if c == nil || w == nil {
		r.violation("I3", e.id, "revoked without a claim")
		return
	}
	if c.revoked = true; e.at-c.leaseWritten < w.leaseLength-5-r.clockDrift {
		r.violation("I3", e.id, "revoked %d ms after the last heartbeat of worker %s; its leases have %d ms",
			e.at-c.leaseWritten, w.id, w.leaseLength)
	}
}

package harness

import (
	"fmt"

	"example.com/runner/jobs"
)

func (r *replay) end(t *taskHistory, c *claim, e event, rest []event) {
	if w := r.workers[e.oldWorker]; w != nil {
		delete(w.running, t.id)
	}
	if c == nil {
		r.violation("I2", e.id, "ended without a claim")
		return
	}

	c.endedAt, c.endedBy = e.at, endedByOwner
	if generation := c.generation; generation != e.oldGeneration && !(c.revoked && generation+1 == e.oldGeneration) {
		r.violation("I2", e.id, "claimed as generation %d, but ended as %d", c.generation, e.oldGeneration)
	}
	if want := resultOf(c.generation); jobs.State(e.state) == jobs.Completed && e.result != want {
		r.violation("I2", e.id, "completed as generation %d with the result %s", c.generation, e.result)
	}

	lost := e.losses != e.oldLosses || e.reason == string(jobs.ReasonLost)
	back := jobs.State(e.state) == jobs.Pending || jobs.State(e.state) == jobs.Scheduled || e.reason == string(jobs.ReasonShutdown)
	switch {
	case c.revoked && !lost:
		r.violation("I2", e.id, "revoked as generation %d, but then ended as %s", c.generation, e.state)
	case lost:
		r.losses++
		r.endLost(c, e, rest)
	case back && e.attempt != e.oldAttempt-1:
		r.violation("I5", e.id, "released as %s with attempt %d after %d", e.state, e.attempt, e.oldAttempt)
	case !back && e.attempt != e.oldAttempt && jobs.State(e.state) != jobs.Cancelled:
		r.violation("I5", e.id, "ended as %s with attempt %d after %d", e.state, e.attempt, e.oldAttempt)
	}
}

// reportedByWorker reports whether the worker itself recorded a loss, because
// its guardian died. It reads the attempt's record, because a client may cancel
// the task meanwhile.
func reportedByWorker(e event, rest []event) bool {
	for _, next := range rest {
		if next.op == "attempt" && next.id == e.id && next.generation == e.oldGeneration {
			return next.err != lostText
		}
	}
	return false
}

func (r *replay) endLost(c *claim, e event, rest []event) {
	if e.losses != e.oldLosses+1 || e.attempt != e.oldAttempt-1 {
		r.violation("I5", e.id, "lost: attempt %d, %d losses became attempt %d, %d losses", e.oldAttempt, e.oldLosses, e.attempt, e.losses)
	}
	if state := jobs.State(e.state); state != jobs.Cancelled && (state == jobs.Failed) != (e.losses > e.maxLosses) {
		r.violation("I5", e.id, "is %s after %d losses of %d", state, e.losses, e.maxLosses)
	}

	w := r.workers[e.oldWorker]
	if w == nil {
		return
	}
	if reportedByWorker(e, rest) {
		c.endedBy = endedByGuardian
		return
	}

	c.endedBy = endedByLease
	if w.leftAt != 0 && w.leftAt <= e.at {
		c.endedBy = endedByDeath
	}

	// The transaction that took a dead worker's tasks has also marked it as
	// ended (the event "leave"). So look for that among the later events of the
	// same transaction. Its other events take more of the worker's tasks, or
	// release tasks that depend on them. Any other event belongs to a later
	// transaction and ends the search.
	for _, next := range rest {
		if next.op == "leave" && next.worker == w.id && next.pid == 0 {
			c.endedBy = endedByDeath
		}
		mine := next.oldWorker == w.id && next.oldState == string(jobs.Running) && next.state != next.oldState
		if next.op != "attempt" && !(next.op == "update" && (mine || next.oldState == string(jobs.Blocked))) {
			break
		}
	}

	if c.endedBy == endedByLease && e.at-c.leaseWritten < w.leaseLength-5-r.clockDrift {
		r.violation("I3", e.id, "taken from worker %s %d ms after its last heartbeat; its leases have %d ms",
			w.id, e.at-c.leaseWritten, w.leaseLength)
	}
}

// attempt checks the record of an attempt whose end runner has accepted.
func (r *replay) attempt(e event) {
	t := r.task(e.id)
	c := t.lastClaim()
	switch {
	case c == nil || c.generation != e.generation || c.worker != e.worker || c.endedAt == 0:
		current := "no worker"
		if c != nil {
			current = fmt.Sprintf("worker %s, generation %d", c.worker, c.generation)
		}
		r.violation("I2", e.id, "accepted an end by worker %s, generation %d, but belonged to %s", e.worker, e.generation, current)
	case c.recorded:
		r.violation("I2", e.id, "accepted a second end of generation %d", e.generation)
	default:
		c.recorded, c.abandoned = true, e.err == abandonedText
	}

	if e.reason == string(jobs.ReasonSignal) {
		r.ownKills++
		r.violation("I14", e.id, "generation %d ended as %s: %s; only runner sends signals to commands",
			e.generation, e.state, e.err)
	}
}

package engine

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// readEvery is the shortest interval at which a busy worker reads the changes
// of other processes. It reads cancel requests. While all slots are taken, it
// also reads which tasks have become due and which queues are new. A read at
// each notice would be 5 % of the work of a busy worker.
const readEvery = 20 * time.Millisecond

// cancelRequested reads cancel requests, if it is time, and stops the attempts
// of their tasks.
func (e *Engine) cancelRequested(ctx context.Context) {
	at := now()
	if e.cancelDueAt.IsZero() || at.Before(e.cancelDueAt) {
		return
	}

	e.cancelDueAt, e.cancelReadAt = time.Time{}, at
	if len(e.running) == 0 {
		return
	}

	requests, err := e.worker.CancelRequests(ctx)
	if err != nil {
		e.log.Warn("cannot read cancel requests", "err", err)
		return
	}

	e.mu.Lock()
	defer e.mu.Unlock()

	for _, request := range requests {
		if a := e.running[request.ClaimID]; a != nil {
			a.stop(jobs.ErrCancelled, request.Now)
		}
	}
}

// releaseUnacknowledged gives the tasks of unacknowledged claims back to their
// queues. These tasks belong to this worker according to the database, but this
// worker does not run them, because an error hid the success of the claim. The
// loop calls this function once per heartbeat interval and after an error of a
// cycle, but never during a claim.
func (e *Engine) releaseUnacknowledged(ctx context.Context) {
	at := now()
	if at.Sub(e.reconciledAt) < e.o.beatEvery() {
		return
	}

	e.reconciledAt = at
	owned, err := e.worker.Owned(ctx)
	if err != nil {
		return // this error is not logged, because the next write reports it
	}

	claims := slices.DeleteFunc(owned, func(c db.ClaimID) bool { return e.running[c] != nil })
	if len(claims) == 0 {
		return
	}

	e.log.Warn("giving back tasks whose claim got no answer", "tasks", len(claims))
	if err := e.worker.Release(ctx, claims, now()); err != nil {
		e.log.Warn("cannot give back tasks", "err", err)
	}
}

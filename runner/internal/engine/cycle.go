package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A cycle is one transaction that writes the outcomes of ended attempts and
// claims tasks for their slots. So a busy worker commits once for many tasks.
//
// Invariants:
//   - An attempt stays in unwritten until a cycle has written its outcome, or
//     until another worker owns its task. After an error, the next cycle sends
//     the same outcomes again. The database accepts an outcome that was already
//     written, so this is safe even if the result of the commit is unknown.
//   - If an error hides the success of a claim, the worker doesn't start the
//     claimed tasks. The next search for unacknowledged claims finds them and
//     gives them back (requests.go).
//   - A worker claims nothing while it stops, while its heartbeats fail, or
//     while it runs a suspect.
//   - Leases and deadlines count from the time at which the cycle was sent, not
//     from its return. So an attempt ends at its worker before another worker
//     may take its task.
//   - A task that must never run twice starts after its claim is on the disk.

// cycle writes the outcomes of the attempts that have ended, claims tasks for
// the free slots, and starts them. It returns an error only if the worker can't
// continue.
func (e *Engine) cycle(ctx context.Context) error {
	finishes, sent := e.finishes(), now()
	beating := e.isBeating(sent) // heartbeats may recover during the write
	slots, claim := e.nextClaim(finishes, sent, beating)
	scan := e.scan || !e.nextDue.IsZero() && !e.nextDue.After(sent) || e.changed && sent.Sub(e.scannedAt) >= readEvery
	done, err := e.worker.Cycle(ctx, db.Cycle{Now: sent, Finish: finishes, Look: scan, Claim: claim})
	if err != nil {
		return e.retryCycle(err)
	}

	e.failures, e.visited = 0, true
	if len(finishes)+len(done.Claimed) > 0 {
		e.wroteAt = sent
	}

	e.settle(&done)

	if done.Looked {
		e.scan, e.changed, e.scannedAt, e.nextDue, e.nextLane = false, false, sent, done.NextDue, done.NextLane
	}

	e.claimMore = claim.Free > 0 && len(done.Claimed) >= claim.Free
	for _, f := range done.Finished {
		if at := f.Change.RunAt; !at.IsZero() && (e.nextDue.IsZero() || at.Before(e.nextDue)) {
			e.nextDue = at
		}
		if f.Change.State == jobs.Pending && f.Change.Losses > 0 { // back in its queue, and it may be a suspect now
			e.look()
		}
	}

	e.foundEmpty = scan && claim.Free > 0 && len(done.Claimed) == 0 && done.DiskFull == nil
	if claim.Free > 0 {
		e.backlog = usedUp(claim, &done)
		e.nextStart = done.NextStart
		e.noteDisk(done.DiskFull)
	}

	e.diskCheckAt = sent.Add(diskCheckEvery)

	if !beating && !e.ending() && len(finishes) == 0 { // or the loop would run without a break
		e.postpone(firstBackoff)
	}

	return e.start(ctx, done.Claimed, max(slots, len(done.Claimed)-claim.Prefetch), sent)
}

// nextClaim returns how many slots the next cycle finds free, and what it
// claims. The slots of the attempts that have ended count as free, because the
// cycle frees them before it claims.
func (e *Engine) nextClaim(finishes []db.Finish, sent time.Time, beating bool) (slots int, c db.Claim) {
	slots = e.o.Concurrency - e.used()
	suspects := e.suspects
	for _, a := range e.unwritten {
		if !a.slotless {
			slots++
		}
		if taskspec.Suspect(a.task) {
			suspects--
		}
	}

	c = db.Claim{Only: e.o.Only, Lease: e.o.Lease, Limit: e.queueSlots(),
		Idle: slots == e.o.Concurrency && len(e.running) == len(e.unwritten)}
	if !e.ending() && suspects == 0 && beating {
		c.Prefetch = e.prefetch(finishes, sent)
		c.Free = max(slots, 0) + c.Prefetch
	}

	return slots, c
}

// isBeating reports whether heartbeats succeed. If they don't, the worker
// claims nothing.
func (e *Engine) isBeating(at time.Time) bool {
	return at.Sub(e.lastBeat()) < e.o.Lease/2 && e.lockState.Load() != lockReplaced
}

// settle forgets the attempts whose outcomes the cycle has written.
func (e *Engine) settle(done *db.CycleResult) {
	settled := e.unwritten
	e.unwritten = e.unwritten[:0]
	clear(e.lastFinishes)
	for i, a := range settled {
		e.forget(a, &done.Finished[i])
	}

	if len(settled)+len(done.Expired) > 0 {
		e.store.TasksEnded()
	}
}

// usedUp reports whether a claim may have left due tasks: it has filled all
// slots, or those of a queue, or an ended task has released others. A batch
// takes only one slot, so the answer may be true too early.
func usedUp(c db.Claim, done *db.CycleResult) bool {
	for i := range done.Claimed {
		if left, limited := c.Limit[done.Claimed[i].Queue]; limited {
			if c.Limit[done.Claimed[i].Queue] = left - 1; left <= 1 {
				return true
			}
		}
	}
	return len(done.Claimed) == c.Free || done.Released || done.Full
}

// finishes returns the outcomes that the next cycle writes. It forgets the
// attempts whose tasks now belong to another worker.
func (e *Engine) finishes() []db.Finish {
	finishes := slices.Grow(e.lastFinishes[:0], len(e.unwritten)) // reuse the memory of the last cycle
	unwritten := make([]*attempt, 0, len(e.unwritten))
	for _, a := range e.unwritten {
		if a.fenced.Load() {
			e.forget(a, nil)
			continue
		}
		finishes = append(finishes, a.finish())
		unwritten = append(unwritten, a)
	}

	e.unwritten, e.lastFinishes = unwritten, finishes
	return finishes
}

// retryCycle handles the error of a cycle. It returns nil if the worker tries
// again after a pause, or err if the worker must end. The next cycle writes the
// same outcomes again. That is safe even if this cycle was committed.
func (e *Engine) retryCycle(err error) error {
	e.reconciledAt = time.Time{} // search for unacknowledged claims at once: the claim may have succeeded in spite of the error
	e.backoff = min(max(2*e.backoff, firstBackoff), maxBackoff)
	e.postpone(e.backoff)
	if errors.Is(err, jobs.ErrBusy) || errors.Is(err, jobs.ErrFull) || errors.Is(err, jobs.ErrUnknown) {
		e.log.Warn("cannot write, will try again", "err", err, "waiting", len(e.unwritten))
		e.failures = 0
		return nil
	}
	if e.failures++; e.failures < 2 && !errors.Is(err, jobs.ErrReplaced) {
		e.log.Error("cannot write, will try once more", "err", err)
		return nil
	}

	return err
}

// SetQueues changes the queues from which the next cycle claims. Tasks that
// this worker has already claimed still run here.
func (e *Engine) SetQueues(queues []jobs.QueueMax) {
	e.mu.Lock()
	e.o.Queues, e.newQueues = queues, true
	e.mu.Unlock()
	e.report()
	e.store.Notify()
}

// queueSlots returns the number of slots that this cycle may fill with tasks of
// each queue, after it has written the outcomes of the ended attempts. It
// returns nil if no queue has a limit.
func (e *Engine) queueSlots() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.o.Queues == nil {
		return nil
	}

	free := map[string]int{}
	for _, q := range e.o.Queues {
		free[q.Name] = cmp.Or(q.Max, e.o.Concurrency)
	}

	for _, a := range e.running {
		if !a.slotless {
			free[a.task.Queue]--
		}
	}

	for _, a := range e.unwritten {
		if !a.slotless {
			free[a.task.Queue]++
		}
	}

	return free
}

// start begins the attempts of claimed tasks, in their order. It begins at most
// n attempts, and the others wait for a slot. The parameter sent is the time at
// which the claim was sent. The leases count from that time.
func (e *Engine) start(ctx context.Context, claimed []jobs.Task, n int, sent time.Time) error {
	// A power failure may undo a claim that is not on the disk yet. So the
	// claim of a task that must never run twice goes to the disk before the
	// task starts.
	if slices.ContainsFunc(claimed, func(t jobs.Task) bool { return t.MaxLosses == 0 }) {
		e.watchClock(ctx)
		if err := e.worker.Sync(ctx, sent); err != nil {
			e.log.Warn("cannot sync a claim", "err", err)
			for _, a := range e.add(claimed, sent) {
				e.unwritten = append(e.unwritten, a.notStarted())
			}
			return e.retryCycle(err)
		}
	}

	// Reset backoff only now, after the sync. If it were reset before, the loop
	// would claim and release tasks without a break while syncs fail.
	e.backoff = 0

	// Call add for all claimed tasks first, so that each batch has all its
	// attempts before one of them begins.
	for _, a := range e.takePrefetched(e.add(claimed, sent), n, sent) {
		a.begin()
	}

	return nil
}

// add registers the attempts of claimed tasks.
func (e *Engine) add(claimed []jobs.Task, sent time.Time) []*attempt {
	attempts := make([]*attempt, len(claimed))
	for i, task := range claimed {
		attempts[i] = newAttempt(e, task)
	}

	e.makeBatches(attempts)
	e.mu.Lock()
	defer e.mu.Unlock()

	for _, a := range attempts {
		a.deadline = e.deadline(sent)
		e.running[a.claim] = a
		if taskspec.Suspect(a.task) {
			e.suspects++
		}
		if a.slotless {
			e.slotless++
		}
	}

	return attempts
}

// deadline returns when the processes of an attempt must be dead, if its task
// was claimed or its lease renewed by a write of the time sent.
func (e *Engine) deadline(sent time.Time) time.Time {
	return sent.Add(e.o.Lease - e.o.beatEvery())
}

// forget removes an attempt from this process. done is nil if another worker
// took the task over before this worker could write the outcome.
func (e *Engine) forget(a *attempt, done *db.Finished) {
	e.mu.Lock()
	delete(e.running, a.claim)
	if a.slotless {
		e.slotless--
	}
	if taskspec.Suspect(a.task) {
		e.suspects--
	}

	e.mu.Unlock()
	a.cancel(nil)
	switch {
	case done == nil || done.Fenced:
		e.store.Fenced.Add(1)
		e.log.Warn("result refused: the task belongs to a newer generation", "task", a.task.ID, "attempt", a.task.Attempt)
	case a.release:
		e.released++
		if a.startErr != nil {
			e.postpone(10 * firstBackoff) // the machine lacks resources, so the next claim waits
			e.log.Warn("not started: the task goes back", "task", a.task.ID, "err", a.startErr)
		}
	default:
		e.forgetWritten(a, done)
	}
}

// forgetWritten logs an attempt whose outcome is in the database.
func (e *Engine) forgetWritten(a *attempt, done *db.Finished) {
	if done.Change.State == jobs.Pending {
		e.released++
	} else {
		e.finished++
	}
	if done.InTx && a.outcome.Error != "" && a.outcome.Error != errNotCommitted.Error() {
		e.log.Warn("the function returned an error after FinishTx", "task", a.task.ID, "err", humanize.Cut(a.outcome.Error, 200))
	}
	e.logEnd(a, done.Change)
}

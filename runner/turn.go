package runner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// turn writes what has ended, and claims and starts what fits. It returns an error only when the work cannot go on.
func (e *engine) turn(ctx context.Context, stopping bool) error {
	o := e.r.options
	finish := slices.Grow(e.finish[:0], len(e.unsettled))
	settled := make([]*attempt, 0, len(e.unsettled))
	for _, a := range e.unsettled {
		if a.fenced.Load() {
			e.forget(a, nil)
			continue
		}
		finish = append(finish, a.finish())
		settled = append(settled, a)
	}
	e.unsettled, e.finish = settled, finish
	slots, alone := e.slots-len(e.running)+len(settled), e.alone // when the settled ones are gone
	for _, a := range settled {
		if a.task.Suspect() {
			alone--
		}
	}
	sent := now()
	free := 0
	beating := sent.Sub(e.lastBeat()) < o.Lease/2 && e.lockLost.Load() != lockReplaced
	if !stopping && beating { // a worker whose beats fail takes nothing more
		if free = slots; alone > 0 {
			free = 0
		}
	}
	look := e.look || !e.nextDue.IsZero() && !e.nextDue.After(sent) || e.changed && sent.Sub(e.lookedAt) >= askEvery
	done, err := e.worker.Turn(ctx, db.Turn{Now: sent, Finish: finish, Look: look,
		Claim: db.Claim{Free: free, Idle: slots == e.slots, Lease: o.Lease, Limit: e.room(settled), MaxWait: o.MaxWait}})
	if err != nil {
		return e.refused(err)
	}
	e.failures, e.pulses.visitedAt = 0, sent
	e.unsettled = e.unsettled[:0]
	clear(e.finish)
	for i, a := range settled {
		e.forget(a, &done.Finished[i])
	}
	if done.Looked {
		e.look, e.changed, e.lookedAt, e.nextDue, e.nextLane = false, false, sent, done.NextDue, done.NextLane
	}
	if free > 0 {
		e.nextStart = done.NextStart
	}
	for _, f := range done.Finished {
		if at := f.Change.RunAt; !at.IsZero() && (e.nextDue.IsZero() || at.Before(e.nextDue)) {
			e.nextDue = at
		}
	}
	e.more = free > 0 && len(done.Claimed) == free
	if slices.ContainsFunc(done.Finished, func(f db.Finished) bool { return f.Change.State == jobs.Pending && f.Change.Losses > 0 }) {
		e.look, e.more = true, true // a suspect now, which the claim of this turn may not have known of
	}
	e.empty = look && free > 0 && len(done.Claimed) == 0 && done.NoRoom == nil
	e.noteRoom(free > 0, done.NoRoom, sent)
	if !beating && !stopping && len(settled) == 0 { // the loop must not spin while beats fail
		e.rest(firstPause)
	}
	return e.start(ctx, done.Claimed, sent)
}

// refused decides what an error of a turn means. Whatever it was, the finishes are kept and written again: that is safe.
func (e *engine) refused(err error) error {
	e.pause = min(max(2*e.pause, firstPause), longestPause)
	e.rest(e.pause)
	if errors.Is(err, jobs.ErrBusy) || errors.Is(err, jobs.ErrFull) || errors.Is(err, jobs.ErrUnknown) {
		e.log.Warn("cannot write, will try again", "err", err, "waiting", len(e.unsettled))
		e.failures = 0
		return nil
	}
	if e.failures++; e.failures < 2 && !errors.Is(err, jobs.ErrReplaced) {
		e.log.Error("cannot write, will try once more", "err", err)
		return nil
	}
	return err
}

// room is how many tasks of each queue may still be claimed; nil: any number of any queue.
func (e *engine) room(settled []*attempt) map[string]int {
	if e.limit == nil {
		return nil
	}
	room := maps.Clone(e.limit)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		room[a.task.Queue]--
	}
	for _, a := range settled {
		room[a.task.Queue]++
	}
	return room
}

// start begins the attempts of claimed tasks, in their order. sent is when the claim was sent: the leases last from there.
func (e *engine) start(ctx context.Context, claimed []jobs.Task, sent time.Time) error {
	if slices.ContainsFunc(claimed, func(t jobs.Task) bool { return t.MaxLosses == 0 }) {
		// A claim may be forgotten by a power cut. One that must never be repeated is on the disk before it starts.
		e.watchClock(ctx)
		if err := e.worker.Sync(ctx, sent); err != nil {
			e.log.Warn("cannot sync a claim", "err", err)
			for _, task := range claimed {
				e.unsettled = append(e.unsettled, e.add(task, sent).notStarted())
			}
			return e.refused(err)
		}
	}
	e.pause = 0 // only now: else what cannot be synced is claimed and given back without a pause
	for _, task := range claimed {
		a := e.add(task, sent)
		a.begin()
	}
	return nil
}

func (e *engine) add(task jobs.Task, sent time.Time) *attempt {
	a := newAttempt(e, task)
	e.mu.Lock()
	defer e.mu.Unlock()
	a.deadline = e.deadline(sent)
	e.running[a.claim] = a
	if task.Suspect() {
		e.alone++
	}
	return a
}

// deadline is when the processes of an attempt must be dead whose lease was renewed, or claimed, by a write that was sent then.
func (e *engine) deadline(sent time.Time) time.Time {
	return sent.Add(e.r.options.Lease - e.r.options.Lease/6)
}

// forget ends the life of an attempt in this process. done is nil when it was fenced before it could be written.
func (e *engine) forget(a *attempt, done *db.Finished) {
	e.mu.Lock()
	delete(e.running, a.claim)
	if a.task.Suspect() {
		e.alone--
	}
	e.mu.Unlock()
	a.cancel(nil)
	switch {
	case done == nil || done.Fenced:
		e.r.fenced.Add(1)
		e.log.Warn("result refused: the task belongs to a newer generation", "task", a.task.ID, "attempt", a.task.Attempt)
	case a.release:
		e.released++
		if a.trouble != nil {
			e.rest(10 * firstPause) // the machine has no room: claim later
			e.log.Warn("not started, given back", "task", a.task.ID, "err", a.trouble)
		}
	default:
		if done.Change.State == jobs.Pending {
			e.released++
		} else {
			e.finished++
		}
		if done.InTx && a.outcome.Error != "" && a.outcome.Error != errNotCommitted.Error() {
			e.log.Warn("its function returned an error after it had finished its task", "task", a.task.ID, "err", cut(a.outcome.Error, 200))
		}
		if result := a.txResult.Load(); done.InTx && result != nil {
			done.Change.Result = *result
		}
		e.logEnd(a, done.Change)
		e.tellEnd(a, done.Change)
		if done.Change.State.Finished() {
			e.r.notifier.TaskEnded(a.task.ID)
		}
		if done.Change.State == jobs.Failed {
			e.hooks.Failed(a.task, done.Change)
		}
	}
}

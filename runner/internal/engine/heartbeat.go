package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// heartbeat renews the leases of the running tasks at the interval beatEvery,
// until the loop ends. It stops an attempt whose task now belongs to another
// worker, and discards its result. If no heartbeat succeeds in time, it stops
// all attempts before their leases end. So no other worker runs the same tasks
// at the same time.
func (e *Engine) heartbeat() {
	margin := e.o.beatEvery()
	ticker := time.NewTicker(margin)
	defer ticker.Stop()

	var deaths <-chan os.Signal
	if e.c != nil && (e.c.OwnProcess || e.info.PID == 1) {
		var stop func()
		deaths, stop = e.c.deaths()
		defer stop()
	}

	for {
		select {
		case <-e.stopped.Done():
			return
		case <-deaths:
			e.c.reap()
			continue
		case <-ticker.C:
		}

		e.watchClock(context.Background())
		e.beat()
		e.keepDir()
		e.checkLock()
		e.watchWAL()
		if deaths != nil {
			e.c.reap() // it may have had to give way to a start
		}
		if since := e.lastBeat(); now().Sub(since) >= e.o.Lease-margin {
			if n := e.stopLost(); n > 0 {
				e.log.Error("heartbeats fail: stopping all attempts", "since", since, "attempts", n)
			}
		}
	}
}

// stopLost stops all attempts, whose leases are about to end. It returns how
// many of them were not stopped yet.
func (e *Engine) stopLost() (stopped int) {
	e.mu.Lock()
	defer e.mu.Unlock()

	for _, a := range e.running {
		if !a.over.Load() && a.ctx.Err() == nil {
			stopped++
		}
		a.stop(jobs.ErrLost, true)
	}

	return stopped
}

// lastBeat returns the time of the last successful heartbeat.
func (e *Engine) lastBeat() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.confirmed
}

// beat renews the leases once.
func (e *Engine) beat() {
	e.mu.Lock()
	claims := make([]db.ClaimID, 0, len(e.running))
	for claim := range e.running {
		claims = append(claims, claim)
	}

	e.mu.Unlock()
	sent := now()
	owned, err := e.worker.Beat(context.Background(), claims, e.o.Lease, sent)
	if err != nil && unusable(err) && !errors.Is(err, jobs.ErrReplaced) {
		e.log.Error("heartbeat failed, will try once more", "err", err)
		sent = now()
		owned, err = e.worker.Beat(context.Background(), claims, e.o.Lease, sent)
	}

	switch {
	case unusable(err):
		e.giveUp(err)
		return
	case err != nil:
		e.log.Warn("heartbeat failed", "err", err)
		return
	}

	deadline := e.deadline(sent)
	finishing := e.confirm(claims, owned, sent, deadline)
	if e.guardians != nil {
		e.guardians.Renew(keysOf(owned), deadline) // may have to wait
	}

	for _, a := range finishing {
		e.stopUnlessFinished(a)
	}
}

// confirm records which claims the worker owned at the last heartbeat, and
// stops the attempts that have lost their tasks. It returns the attempts whose
// claims are gone and that have called FinishTx.
func (e *Engine) confirm(claims, owned []db.ClaimID, sent, deadline time.Time) (finishing []*attempt) {
	kept := make(map[db.ClaimID]bool, len(owned))
	for _, claim := range owned {
		kept[claim] = true
	}

	e.mu.Lock()
	defer e.mu.Unlock()

	e.confirmed = sent
	for _, claim := range owned {
		if a := e.running[claim]; a != nil {
			a.deadline = deadline
		}
	}

	for _, claim := range claims {
		// An attempt that has ended stays in e.running until its outcome is
		// written. After that write, or after the commit of FinishTx, the
		// worker does not own the task any more. That is not a loss.
		a := e.running[claim]
		switch {
		case a == nil || kept[claim] || a.over.Load():
		case a.inTx.Load() != 0:
			finishing = append(finishing, a)
		default:
			a.lose()
		}
	}

	return finishing
}

// stopUnlessFinished stops an attempt that has called FinishTx and does not own
// its task any more, unless the transaction of FinishTx was committed.
func (e *Engine) stopUnlessFinished(a *attempt) {
	ctx, cancel := context.WithTimeout(e.stopped, e.o.beatEvery())
	defer cancel()
	finished, err := e.worker.FinishedTx(ctx, a.claim, time.UnixMilli(a.inTx.Load()))
	if err == nil && !finished && !a.over.Load() {
		a.lose()
	}
}

// lose stops an attempt whose task belongs to another worker.
func (a *attempt) lose() {
	a.fenced.Store(true)
	a.stop(jobs.ErrLost, true)
}

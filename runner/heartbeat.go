package runner

import (
	"context"
	"errors"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// heartbeat renews the leases of the running tasks every sixth of a lease, until the loop is over. An attempt whose task is no
// longer ours is stopped and its result discarded; when no beat comes through in time, all of them are stopped while their
// leases still stand, so that no successor runs beside them.
func (e *engine) heartbeat() {
	lease := e.r.options.Lease
	margin := lease / 6
	ticker := time.NewTicker(margin)
	defer ticker.Stop()
	for {
		select {
		case <-e.stopped:
			return
		case <-ticker.C:
		}
		e.watchClock(context.Background())
		e.beat(lease)
		e.keepDir()
		e.checkLock()
		e.watchLog()
		if e.r.options.OwnProcess || e.info.PID == 1 {
			supervisor.ReapAdopted()
		}
		if now().Sub(e.lastBeat()) >= lease-margin {
			e.mu.Lock()
			if len(e.running) > 0 {
				e.log.Error("no heartbeat came through: stopping all attempts", "since", e.confirmed)
			}
			for _, a := range e.running {
				a.stop(jobs.ErrLost, true)
			}
			e.mu.Unlock()
		}
	}
}

func (e *engine) lastBeat() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.confirmed
}

func (e *engine) beat(lease time.Duration) {
	e.mu.Lock()
	claims := make([]db.ClaimID, 0, len(e.running))
	for claim := range e.running {
		claims = append(claims, claim)
	}
	e.mu.Unlock()
	sent := now()
	owned, err := e.worker.Beat(context.Background(), claims, lease, sent)
	if err != nil && unusable(err) && !errors.Is(err, jobs.ErrReplaced) {
		e.log.Error("heartbeat failed, will try once more", "err", err)
		sent = now()
		owned, err = e.worker.Beat(context.Background(), claims, lease, sent)
	}
	switch {
	case unusable(err):
		e.giveUp(err)
		return
	case err != nil:
		e.log.Warn("heartbeat failed", "err", err)
		return
	}
	kept := make(map[db.ClaimID]bool, len(owned))
	for _, claim := range owned {
		kept[claim] = true
	}
	deadline := e.deadline(sent)
	if e.commands.Guardians != nil {
		defer func() { e.commands.Guardians.Renew(keysOf(owned), deadline) }() // without the mutex, since it may have to wait
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
		// What has ended meanwhile is in running until its end is written: that write may have come before this one. So may a
		// commit of the function's own.
		if a := e.running[claim]; a != nil && !kept[claim] && !a.over.Load() && a.inTx.Load() == 0 {
			a.fenced.Store(true)
			a.stop(jobs.ErrLost, true)
		}
	}
}

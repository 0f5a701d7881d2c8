package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// reapEvery is the interval at which a reaper checks other workers. The interval is shorter if a lease is shorter than six times reapEvery.
const (
	reapEvery   = time.Second
	reapAgain   = 100 * time.Millisecond // while the guardians of a dead worker are about to end
	minReapWait = 10 * time.Millisecond
)

// reaper takes over the tasks of workers that died or hang. Every worker has a reaper, and no reaper leads.
//
// A worker is dead when its liveness lock can be taken. Then all of its tasks are lost, and can run again at once. A dead worker reports
// nothing, so the reaper first kills the worker's processes, and records the loss when no process is left. The records in the lock file
// show whether there may be any.
//
// A worker hangs when it holds its lock and does not renew its leases. It may go on at any moment and report what it finds, even that its
// commands were killed. So the reaper revokes the claims first, and the database then refuses the worker's reports of them. Then the
// reaper kills the processes, and then it records the loss. If the reaper dies in between, the next reaper that sees the revoked claim
// twice completes the work.
//
// The reaper compares no two clocks. A lease has expired when this process has seen it unchanged for its whole length of monotonic time.
// So a jump of the wall clock reaps nothing, a reaper that has just started waits for one lease first, and a heartbeat in between saves
// the task. Time in which the reaper itself was stopped does not count, because the other workers may have been stopped with it.
type reaper struct {
	e         *Engine
	seen      map[db.Lease]time.Duration // leases of other workers, and for how long each was seen unchanged
	lookedAt  time.Time                  // when seen was last updated
	again     bool                       // the guardians of a dead worker are about to end
	freeSince map[string]time.Time       // for workers whose processes this reaper cannot see: since when their lock is free
}

func newReaper(e *Engine) *reaper { return &reaper{e: e, freeSince: map[string]time.Time{}} }

// run looks at other workers until the loop is over. While no other worker runs anything, it waits for a notice.
func (p *reaper) run() {
	notices, unsubscribe := p.e.o.Notifier.SubscribeWorker(context.Background())
	defer unsubscribe()
	for first := true; ; first = false {
		if len(p.seen) == 0 && !p.again && !first {
			select {
			case <-p.e.stopped.Done():
				return
			case <-notices:
			}
		}
		if !first && !p.e.waitFor(p.pause()) {
			return
		}
		if owners, ok := p.takeOver(); ok {
			p.expire(owners)
		}
	}
}

// pause returns how long the reaper waits between two looks.
func (p *reaper) pause() time.Duration {
	pause := reapEvery
	if p.again {
		pause = reapAgain
	}
	for lease := range p.seen {
		pause = min(pause, p.length(lease)/6)
	}
	return max(pause, minReapWait)
}

// length returns how long a lease lasts. The lease of an unknown worker lasts as long as a lease of this worker.
func (p *reaper) length(lease db.Lease) time.Duration {
	return cmp.Or(time.Duration(lease.Length)*time.Millisecond, p.e.o.Lease)
}

// start takes over tasks before this worker claims anything. So a lone worker that starts again gets back the tasks that it lost.
func (p *reaper) start() {
	live := map[string]bool{p.e.worker.ID(): true}
	others, ok := p.takeOver()
	if !ok {
		return
	}
	for id := range others {
		live[id] = true
	}
	p.e.removeStrayLocks(live)
}

// takeOver reaps the dead workers and returns the other ones. It returns false if it cannot read the workers.
func (p *reaper) takeOver() (map[string]db.Owner, bool) {
	owners, err := p.e.worker.Owners(context.Background())
	if err != nil {
		return nil, false // the next write reports the error
	}
	p.again = false
	others := make(map[string]db.Owner, len(owners))
	for _, o := range owners {
		if !p.reapDead(o) {
			others[o.ID] = o
		}
	}
	for id := range p.freeSince {
		if _, waits := others[id]; !waits {
			delete(p.freeSince, id)
		}
	}
	return others, true
}

// reapDead takes over the tasks of worker o if it is dead, and reports whether it has done so. Several reapers may do this at the same
// time. They take the lock as a shared lock, so a reaper that is stopped here does not block the others. The loss is recorded once.
func (p *reaper) reapDead(o db.Owner) bool {
	me := p.e.info
	rebooted := o.BootID != "" && me.BootID != "" && o.BootID != me.BootID // a reboot has ended all processes
	path := supervisor.LockPath(p.e.store.Dir(), o.ID)
	if path == "" {
		return false
	}
	lock, err := supervisor.TakeLock(path)
	switch {
	case err == nil:
		defer func() { _ = lock.Close() }() // releases the lock
	case errors.Is(err, supervisor.ErrHeld) && p.canSweep(o) && supervisor.ResumeGuardians(o.ID, o.PID): // they end within a moment
		p.again = true
		return false
	case errors.Is(err, supervisor.ErrHeld) || !rebooted || o.Host != me.Host: // without the lock file, only a reboot of this host is proof
		return false
	}
	if !rebooted && !lock.Clean() && !p.clear(o, nil, lock.Records()) {
		return false
	}
	reaped, err := p.e.worker.ReapDead(context.Background(), o.Number, now())
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "worker", o.ID, "err", err)
		return false
	}
	if lock != nil {
		_ = lock.Remove() // the next start removes a file that is left
	}
	if p.runHooks(reaped); len(reaped) > 0 {
		p.e.log.Warn("took over tasks of a worker that is gone", "tasks", len(reaped), "worker", o.ID)
		p.e.o.Notifier.Notify()
	}
	return true
}

// clear kills the processes of a dead or hung worker: those of the claims that keys name, or all of them if keys is nil. It returns false
// if a process does not die, or if this reaper cannot see the processes.
func (p *reaper) clear(o db.Owner, keys []supervisor.Key, records []supervisor.Record) bool {
	me := p.e.info
	switch {
	case p.canSweep(o):
		denied, clean := supervisor.Sweep(o.ID, keys, records)
		for _, d := range denied {
			p.e.log.Warn("a process of another user has outlived its worker and cannot be killed",
				"worker", o.ID, "pid", d.PID, "name", d.Name, "uid", d.UID)
		}
		if !clean {
			p.e.log.Warn("cannot kill all processes of lost tasks", "worker", o.ID)
		}
		return clean
	case keys != nil:
		return true // the lease has expired, and nothing else can be known
	case o.Namespace != me.Namespace && o.PID == 1: // the kernel kills all processes of a pid namespace with its first process
		since, known := p.freeSince[o.ID]
		if !known {
			p.freeSince[o.ID] = now()
		}
		return known && now().Sub(since) >= reapEvery
	default:
		return !o.Busy
	}
}

// canSweep reports whether this process sees the processes of a worker and may kill them.
func (p *reaper) canSweep(o db.Owner) bool {
	me := p.e.info
	return o.Namespace != "" && o.Namespace == me.Namespace && o.UID == me.UID && o.BootID == me.BootID
}

// expire takes the claims away from workers that do not renew them. It revokes the claims, kills their processes, and records the loss.
func (p *reaper) expire(owners map[string]db.Owner) {
	ctx := context.Background()
	leases, err := p.e.worker.Leases(ctx)
	if err != nil {
		return // the next write reports the error
	}
	at := now()
	var lost []db.Lease
	p.seen, lost = p.expired(leases, at.Sub(p.lookedAt))
	p.lookedAt = at
	if len(lost) == 0 {
		return
	}
	revoked, err := p.e.worker.Revoke(ctx, lost)
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "err", err)
		return
	}
	byWorker := map[string][]db.Lease{}
	for _, lease := range revoked {
		byWorker[lease.WorkerID] = append(byWorker[lease.WorkerID], lease)
	}
	for id, revoked := range byWorker {
		path := supervisor.LockPath(p.e.store.Dir(), id)
		if o, known := owners[id]; known && !p.clear(o, keysOf(claimsOf(revoked)), supervisor.ReadRecords(path)) {
			continue
		}
		reaped, err := p.e.worker.Reap(ctx, revoked, now())
		if err != nil {
			p.e.log.Warn("cannot take over tasks", "worker", id, "err", err)
			continue
		}
		if p.runHooks(reaped); len(reaped) > 0 {
			p.e.log.Warn("took over tasks of a worker that hangs", "tasks", len(reaped), "worker", id)
			p.e.o.Notifier.Notify()
		}
	}
}

// expired returns the leases that are now seen, each with the time for which it was seen unchanged, and the leases that were seen for
// their whole length. passed is the time since the last look.
//
// At most a third of a lease counts of passed. Looks are a sixth of a lease apart. So a later look means that this process was stopped, and
// maybe the other workers with it. They get the time to renew their leases before their tasks are taken away.
//
// A revoked claim has expired when it is seen for the second time: its reaper had the time between two looks to record the loss.
func (p *reaper) expired(leases []db.Lease, passed time.Duration) (map[db.Lease]time.Duration, []db.Lease) {
	next := make(map[db.Lease]time.Duration, len(leases))
	var lost []db.Lease
	for _, lease := range leases {
		length := p.length(lease)
		unchanged, known := p.seen[lease]
		if known {
			unchanged += min(passed, length/3)
		}
		next[lease] = unchanged
		if unchanged >= length || known && lease.Revoked() {
			lost = append(lost, lease)
		}
	}
	return next, lost
}

// keysOf returns the keys that mark the processes of claims.
func keysOf(claims []db.ClaimID) []supervisor.Key {
	keys := make([]supervisor.Key, len(claims))
	for i, claim := range claims {
		keys[i] = supervisor.Key{ID: claim.ID, Generation: claim.GenerationID}
	}
	return keys
}

// claimsOf returns the claims that leases belong to.
func claimsOf(leases []db.Lease) []db.ClaimID {
	claims := make([]db.ClaimID, len(leases))
	for i, lease := range leases {
		claims[i] = lease.Claimed()
	}
	return claims
}

// runHooks runs the on-failure command for the tasks that failed because they were lost once too often.
func (p *reaper) runHooks(reaped []db.Reaped) {
	for _, r := range reaped {
		if r.Change.State == jobs.Failed {
			p.e.hooks.Failed(r.Task, r.Change)
		}
	}
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/runner/internal/exec"
)

// reapEvery is the interval at which a reaper checks other workers. The
// interval is shorter if a lease is shorter than six times reapEvery.
const (
	reapEvery = time.Second
	// A reaper spends at most 1/reapShare of its time on reading workers and
	// leases, because these reads are slow while a transaction on the server
	// stays open for long. If leases are short, the reaper checks them more
	// often, and may spend more time.
	reapShare   = 50
	reapAgain   = 100 * time.Millisecond // interval of the checks while the guardians of a dead worker are about to end
	minReapWait = 10 * time.Millisecond
	minReapRead = 10 * time.Second // shortest time after which a read is given up
)

// reaper takes over the tasks of workers that died or hang. Every worker has a
// reaper, and all reapers are equal.
//
// A worker is dead when a reaper can take its liveness lock. Then all of its
// tasks are lost, and can run again at once. A dead worker writes nothing more,
// so the reaper first kills the processes of the worker. It records the loss
// when no process is left. The records in the lock file show whether any
// processes may be left.
//
// A worker hangs when it holds its lock and does not renew its leases. It may
// continue at any moment and write outcomes, such as "killed" for a command
// that the reaper has killed. So the reaper revokes the claims first, and the
// database then refuses the outcomes from that worker. Next the reaper kills
// the processes, and at last it records the loss. If the reaper dies before
// that, another reaper finds the revoked claim in two checks in a row, and
// completes the takeover.
//
// The reaper does not compare its clock with times that other workers have
// written. A lease has expired when this process has seen it unchanged for the
// whole length of the lease, measured with the monotonic clock. So a jump of
// the wall clock makes no lease expire. A reaper that has just started waits at
// least the length of a lease, and a heartbeat in that time saves the task.
// Time in which the reaper itself was suspended does not count, because the
// other workers may have been suspended, too.
type reaper struct {
	e      *Engine
	seen   map[db.Lease]time.Duration // leases of other workers, and the time for which each was seen unchanged
	seenAt time.Time                  // time of the last update of seen
	cost   time.Duration              // time that the last read of workers and leases took
	again  bool                       // whether to check again soon: guardians of a dead worker are about to end, or the first check failed
	// for workers whose processes this reaper cannot see: the time at which it
	// first found their lock free
	freeSince map[string]time.Time
}

// run checks the other workers at intervals until the loop ends. While no other
// worker runs anything, it waits for a notice instead. The notices must come
// from before start.
func (p *reaper) run(notices <-chan struct{}) {
	for {
		if len(p.seen) == 0 && !p.again {
			select {
			case <-p.e.stopped.Done():
				return
			case <-notices:
			}
		}
		if !p.e.waitFor(p.pause()) {
			return
		}
		if owners, ok := p.takeOver(); ok {
			p.expire(owners)
		}
	}
}

// pause returns the time between two checks of the other workers.
func (p *reaper) pause() time.Duration {
	pause := max(reapEvery, reapShare*p.cost)
	if p.again {
		pause = reapAgain
	}
	for lease := range p.seen {
		pause = min(pause, p.length(lease)/6)
	}

	return max(pause, minReapWait)
}

// length returns the length of a lease. If the lease length of its worker is
// unknown, it returns the length of this worker's own leases.
func (p *reaper) length(lease db.Lease) time.Duration {
	return cmp.Or(time.Duration(lease.Length)*time.Millisecond, p.e.o.Lease)
}

// start takes over the tasks of dead workers before this worker claims
// anything. So a single worker that starts again after a crash gets its tasks
// back at once.
func (p *reaper) start() {
	live, ok := p.takeOver()
	if !ok {
		p.again = true
		return
	}

	p.expire(live)
	live[p.e.worker.ID()] = db.Owner{}
	p.e.removeStrayFiles(live)
}

// takeOver takes over the tasks of dead workers. It returns the workers whose
// tasks it has not taken over, or false if it cannot read the workers.
func (p *reaper) takeOver() (map[string]db.Owner, bool) {
	ctx, cancel := p.readContext()
	defer cancel()

	began := now()
	owners, err := p.e.worker.Owners(ctx)
	p.cost = now().Sub(began)
	if err != nil {
		return nil, false // this error is not logged, because the next write reports it
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

// readContext returns the context of a read. It ends with the loop, because Run
// waits for the reaper, and a server that hangs may never answer.
func (p *reaper) readContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.e.stopped, max(p.e.o.Lease, minReapRead))
}

// reapDead takes over the tasks of worker o if it is dead, and reports whether
// it has done so. Several reapers may do this at the same time. They take the
// lock as a shared lock, so a reaper that is suspended here does not block the
// others. The database records the loss only once.
func (p *reaper) reapDead(o db.Owner) bool {
	me := p.e.info
	rebooted := o.BootID != "" && me.BootID != "" && o.BootID != me.BootID // a reboot has ended all processes of the worker
	path := supervisor.LockPath(p.e.store.Dir(), o.ID)
	if path == "" {
		return false
	}

	lock, err := supervisor.TakeLock(path)
	switch {
	case err == nil:
		defer func() { _ = lock.Close() }() // Close also releases the lock
	// the worker is dead, but its guardians still hold the lock and end soon
	case errors.Is(err, supervisor.ErrHeld) && p.canSweep(o) && supervisor.ResumeGuardians(o.ID, o.PID):
		p.again = true
		return false
	// without the lock, only a reboot of this host since the start of the
	// worker proves that the worker is dead
	case errors.Is(err, supervisor.ErrHeld) || !rebooted || o.Host != me.Host:
		return false
	}

	if !rebooted && !lock.Clean() && !p.clear(o, nil) {
		return false
	}

	reaped, err := p.e.worker.ReapDead(context.Background(), o.Number, now())
	if err == nil && lock != nil {
		_ = lock.Remove() // if this fails, the next worker that starts removes the file
	}

	p.noteReaped(reaped, err, o.ID, "took over tasks of a worker that is gone")
	return err == nil
}

// noteReaped cleans up after tasks of a worker whose losses are now recorded.
func (p *reaper) noteReaped(reaped []db.Reaped, err error, worker, text string) {
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "worker", worker, "err", err)
		return
	}

	for _, r := range reaped { // the generation of a task whose claim was revoked is one above that of the claim
		exec.RemoveShared(p.e.store, worker, r.Task.ID, r.Task.GenerationID-1)
		exec.RemoveShared(p.e.store, worker, r.Task.ID, r.Task.GenerationID)
	}

	if len(reaped) > 0 {
		p.e.log.Warn(text, "tasks", len(reaped), "worker", worker)
		p.e.store.Notify()
	}
}

// clear kills the processes of tasks of the worker o, which is dead or hangs.
// It reports whether this reaper may take these tasks over. The tasks are those
// of the claims in keys or, if keys is nil, all tasks of o.
//
// If this reaper can see the processes of o, it kills those of the tasks, and
// returns true when none of them is left. If it cannot see the processes, it
// kills nothing. It then returns true if keys is not nil, because the leases of
// these claims have expired. If keys is nil, it returns true only if o ran no
// task, or if the kernel has killed all processes of o.
func (p *reaper) clear(o db.Owner, keys []supervisor.Key) bool {
	me := p.e.info
	switch {
	case p.canSweep(o):
		clean := supervisor.Sweep(o.ID, keys, supervisor.LockPath(p.e.store.Dir(), o.ID))
		if !clean {
			p.e.log.Warn("cannot kill all processes of lost tasks", "worker", o.ID)
		}
		return clean
	case keys != nil:
		return true // this reaper cannot see the processes and has to rely on the expired lease
	// when process 1 of a PID namespace dies, the kernel kills all processes of
	// the namespace, soon after it has freed the lock
	case o.Namespace != me.Namespace && o.PID == 1:
		since, known := p.freeSince[o.ID]
		if !known {
			p.freeSince[o.ID] = now()
		}
		return known && now().Sub(since) >= reapEvery
	default:
		return !o.Busy
	}
}

// canSweep reports whether this process can see the processes of a worker and
// has the rights to kill them.
func (p *reaper) canSweep(o db.Owner) bool {
	me := p.e.info
	return o.Namespace != "" && o.Namespace == me.Namespace && o.UID == me.UID && o.BootID == me.BootID
}

// expire takes over the tasks of workers that do not renew their leases. It
// revokes the claims, kills the processes of the tasks, and records the loss.
func (p *reaper) expire(owners map[string]db.Owner) {
	ctx, cancel := p.readContext()
	defer cancel()

	began := now()
	leases, err := p.e.worker.Leases(ctx)
	if err != nil {
		return // this error is not logged, because the next write reports it
	}

	at := now()
	p.cost += at.Sub(began)
	var lost []db.Lease
	p.seen, lost = p.expired(leases, at.Sub(p.seenAt))
	p.seenAt = at
	if len(lost) == 0 {
		return
	}

	revoked, err := p.e.worker.Revoke(context.Background(), lost) // package db limits the time of writes
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "err", err)
		return
	}

	byWorker := map[string][]db.Lease{}
	for _, lease := range revoked {
		byWorker[lease.WorkerID] = append(byWorker[lease.WorkerID], lease)
	}

	for id, revoked := range byWorker {
		claims := make([]db.ClaimID, len(revoked))
		for i, lease := range revoked {
			claims[i] = lease.Claimed()
		}

		if o, known := owners[id]; known && !p.clear(o, keysOf(claims)) {
			continue
		}
		reaped, err := p.e.worker.Reap(context.Background(), revoked, now())
		p.noteReaped(reaped, err, id, "took over tasks of a worker that hangs")
	}
}

// expired compares leases with those of the last check, which is passed ago. It
// returns for how long each has not changed, and those that have expired.
//
// Checks are a sixth of a lease apart. If one comes much later, this process
// was suspended, and maybe the other workers, too. So a check counts at most a
// third of a lease, and the other workers have time to renew theirs.
//
// A revoked claim that two checks in a row find has expired, too: the reaper
// that revoked it should have recorded the loss in between, so it's dead or
// hangs.
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

// keysOf returns the keys that identify the processes of claims.
func keysOf(claims []db.ClaimID) []supervisor.Key {
	keys := make([]supervisor.Key, len(claims))
	for i, claim := range claims {
		keys[i] = supervisor.Key{ID: claim.ID, Generation: claim.GenerationID}
	}
	return keys
}

package runner

import (
	"context"
	"errors"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/process"
	"example.com/runner/jobs"
)

// reapEvery is how often other workers are looked at.
const reapEvery = time.Second

// reaper takes over the tasks of workers that died or hang. Every worker does it, and none leads.
//
// A worker is dead when its liveness lock can be taken: then all that it ran is lost, and can run again at once. The records in its
// lock file say whether processes of its commands may have outlived their guardians; those are killed first, and while that does not
// succeed its tasks stay where they are.
//
// A worker that holds its lock and does not renew its leases hangs. No two clocks are compared: a lease has expired when this
// process has seen it unchanged for its whole length of monotonic time. So a jump of the wall clock reaps nothing, a process that
// has just started waits for one lease first, and a beat that comes in between saves its task.
type reaper struct {
	e    *engine
	seen map[db.Lease]time.Time // of others, and since when
	free map[string]time.Time   // since when the lock of a worker is free whose processes cannot be looked at
}

func newReaper(e *engine) *reaper { return &reaper{e: e, free: map[string]time.Time{}} }

// run looks every second until the loop is over. While no other worker runs anything, it waits until somebody has written.
func (p *reaper) run() {
	notices, unsubscribe := p.e.r.wake.news(context.Background())
	defer unsubscribe()
	for first := true; ; first = false {
		if len(p.seen) == 0 && !first {
			select {
			case <-p.e.stopped:
				return
			case <-notices:
			}
		}
		if !first && !p.e.pauseOf(reapEvery) {
			return
		}
		owners := p.takeOver()
		p.expire(owners)
	}
}

// start is the first look, before this worker claims anything: a lone worker that is started again takes up what it lost.
func (p *reaper) start() {
	live := map[string]bool{p.e.worker.ID(): true}
	for id := range p.takeOver() {
		live[id] = true
	}
	p.e.r.removeStrayLocks(live)
}

// takeOver reaps the dead, and returns the others.
func (p *reaper) takeOver() map[string]db.Owner {
	owners, err := p.e.worker.Owners(context.Background())
	if err != nil {
		return nil // told by the next write
	}
	others := make(map[string]db.Owner, len(owners))
	for _, o := range owners {
		if !p.bury(o) {
			others[o.ID] = o
		}
	}
	for id := range p.free {
		if _, waits := others[id]; !waits {
			delete(p.free, id)
		}
	}
	return others
}

// bury reaps what o had in hand if it is dead, and returns whether it is done with. The lock is held until all is written, so that
// no two reapers work on one owner.
func (p *reaper) bury(o db.Owner) bool {
	me := p.e.info
	before := o.BootID != "" && me.BootID != "" && o.BootID != me.BootID // of another run of the kernel: nothing of it lives
	path := p.e.r.lockPath(o.ID)
	if path == "" {
		return false
	}
	lock, err := process.TakeLock(path)
	switch {
	case err == nil:
		defer func() { _ = lock.Close() }() // closing is letting go
	case errors.Is(err, process.ErrHeld) || !before || o.Host != me.Host: // without its file, only a reboot of this very host is proof
		return false
	}
	if !before && !lock.Clean() && !p.clear(o, nil, lock.Records()) {
		return false
	}
	reaped, err := p.e.worker.ReapDead(context.Background(), o.ID, now())
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "worker", o.ID, "err", err)
		return false
	}
	if lock != nil {
		_ = lock.Remove() // else the next start does
	}
	if p.tell(reaped); len(reaped) > 0 {
		p.e.log.Warn("took over tasks of a worker that is gone", "tasks", len(reaped), "worker", o.ID)
		p.e.r.wake.tell()
	}
	return true
}

// clear sees to it that no process of a dead or hung worker's commands is left: of all of them, or of those that keys name. False:
// there is one that cannot be killed, or nobody can tell.
func (p *reaper) clear(o db.Owner, keys []process.Key, records []process.Record) bool {
	me := p.e.info
	switch {
	case p.canSweep(o):
		denied, clean := process.Sweep(o.ID, keys, records)
		for _, d := range denied {
			p.e.log.Warn("a process of another user has outlived its worker and cannot be killed", "worker", o.ID, "pid", d.PID, "name", d.Name, "uid", d.UID)
		}
		if !clean {
			p.e.log.Warn("processes of lost tasks do not die", "worker", o.ID)
		}
		return clean
	case keys != nil:
		return true // its lease has expired, and that is all there is to go by
	case o.Namespace != me.Namespace && o.PID == 1: // the kernel kills all of a pid namespace with its first process
		since, known := p.free[o.ID]
		if !known {
			p.free[o.ID] = now()
		}
		return known && now().Sub(since) >= reapEvery
	default:
		return !o.Busy
	}
}

func (p *reaper) canSweep(o db.Owner) bool {
	me := p.e.info
	return o.Namespace != "" && o.Namespace == me.Namespace && o.UID == me.UID && o.BootID == me.BootID
}

// expire reaps the claims of workers that do not renew them.
func (p *reaper) expire(owners map[string]db.Owner) {
	ctx := context.Background()
	leases, err := p.e.worker.Leases(ctx)
	if err != nil {
		return // told by the next write
	}
	var lost []db.Lease
	p.seen, lost = expired(p.seen, leases, now(), p.e.r.options.Lease)
	of := map[string][]db.Lease{}
	for _, lease := range lost {
		of[lease.WorkerID] = append(of[lease.WorkerID], lease)
	}
	for id, lost := range of {
		if o, known := owners[id]; known {
			keys := make([]process.Key, len(lost))
			for i, lease := range lost {
				keys[i] = process.Key{ID: lease.ID, Generation: lease.GenerationID}
			}
			if !p.clear(o, keys, process.ReadRecords(p.e.r.lockPath(id))) {
				continue
			}
		}
		reaped, err := p.e.worker.Reap(ctx, lost, now())
		if err != nil {
			p.e.log.Warn("cannot take over tasks", "worker", id, "err", err)
			continue
		}
		if p.tell(reaped); len(reaped) > 0 {
			p.e.log.Warn("took over tasks of a worker that hangs", "tasks", len(reaped), "worker", id)
			p.e.r.wake.tell()
		}
	}
}

// tell tells of the tasks that failed by being lost once too often.
func (p *reaper) tell(reaped []db.Reaped) {
	for _, r := range reaped {
		if r.Change.State == jobs.Failed {
			p.e.hooks.failed(r.Task, r.Change)
		}
	}
}

// pauseOf waits for d, and returns false when the work is over before that.
func (e *engine) pauseOf(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-e.stopped:
		return false
	case <-timer.C:
		return true
	}
}

// expired returns what has now been seen, and since when, and those of it that were seen for the whole length of their lease.
// A lease of unknown length counts as fallback.
func expired(seen map[db.Lease]time.Time, leases []db.Lease, at time.Time, fallback time.Duration) (map[db.Lease]time.Time, []db.Lease) {
	next := make(map[db.Lease]time.Time, len(leases))
	var lost []db.Lease
	for _, lease := range leases {
		since, known := seen[lease]
		if !known {
			since = at
		}
		next[lease] = since
		length := time.Duration(lease.Length) * time.Millisecond
		if length == 0 {
			length = fallback
		}
		if at.Sub(since) >= length {
			lost = append(lost, lease)
		}
	}
	return next, lost
}

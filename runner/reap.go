package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// reapEvery is how often a reaper looks at other workers. It looks more often while a lease is shorter than six times that.
const (
	reapEvery  = time.Second
	againAfter = 100 * time.Millisecond // when a dead worker's guardians are about to end
)

// reaper takes over the tasks of workers that died or hang. Every worker has one, and none leads.
//
// A worker is dead when its liveness lock can be taken: then all of its tasks are lost, and can run again at once. A dead worker reports
// nothing, so its processes are killed first, and the loss is recorded when none is left. The records in its lock file say whether there may
// be any.
//
// A worker that holds its lock and does not renew its leases hangs. It may go on at any moment and report what it finds, even that its
// commands were killed. So its claims are revoked first, which the database then refuses to end for it; then their processes are killed;
// then the loss is recorded. A revoked claim whose reaper died is completed by the next reaper that sees it twice.
//
// No two clocks are compared: a lease has expired when this process has seen it unchanged for its whole length of monotonic time. So a
// jump of the wall clock reaps nothing, a reaper that has just started waits for one lease first, and a heartbeat in between saves its
// task. Time in which the reaper itself was stopped does not count: the others may have been stopped with it.
type reaper struct {
	e      *engine
	seen   map[db.Lease]time.Duration // leases of other workers, and for how long each was seen unchanged
	looked time.Time                  // when seen was last brought up to date
	again  bool                       // a worker that is dead will be free of its guardians in a moment
	free   map[string]time.Time       // since when the lock of a worker is free whose processes cannot be looked at
}

func newReaper(e *engine) *reaper { return &reaper{e: e, free: map[string]time.Time{}} }

// run looks again and again until the loop is over. While no other worker runs anything, it waits until somebody has written.
func (p *reaper) run() {
	notices, unsubscribe := p.e.r.notifier.SubscribeWorker(context.Background())
	defer unsubscribe()
	for first := true; ; first = false {
		if len(p.seen) == 0 && !p.again && !first {
			select {
			case <-p.e.stopped:
				return
			case <-notices:
			}
		}
		if !first && !p.e.pauseOf(p.pause()) {
			return
		}
		if owners, ok := p.takeOver(); ok {
			p.expire(owners)
		}
	}
}

// pause is how long the reaper waits between two looks.
func (p *reaper) pause() time.Duration {
	pause := reapEvery
	if p.again {
		pause = againAfter
	}
	for lease := range p.seen {
		pause = min(pause, p.length(lease)/6)
	}
	return max(pause, 10*time.Millisecond)
}

// length is how long a lease lasts. One of a worker that is not known lasts as long as one of this worker's.
func (p *reaper) length(lease db.Lease) time.Duration {
	return cmp.Or(time.Duration(lease.Length)*time.Millisecond, p.e.r.options.Lease)
}

// start is the first look, before this worker claims anything: a lone worker that is started again takes up what it lost.
func (p *reaper) start() {
	live := map[string]bool{p.e.worker.ID(): true}
	others, ok := p.takeOver()
	if !ok {
		return
	}
	for id := range others {
		live[id] = true
	}
	p.e.r.removeStrayLocks(live)
}

// takeOver reaps the dead, and returns the others; false if it cannot tell them apart.
func (p *reaper) takeOver() (map[string]db.Owner, bool) {
	owners, err := p.e.worker.Owners(context.Background())
	if err != nil {
		return nil, false // told by the next write
	}
	p.again = false
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
	return others, true
}

// bury reaps what o had in hand if it is dead, and returns whether it is done with. Several reapers may do it at once, since the lock is
// taken as one of many readers: a reaper that is stopped here keeps no other one waiting. The loss is recorded once.
func (p *reaper) bury(o db.Owner) bool {
	me := p.e.info
	before := o.BootID != "" && me.BootID != "" && o.BootID != me.BootID // of another run of the kernel: nothing of it lives
	path := p.e.r.lockPath(o.ID)
	if path == "" {
		return false
	}
	lock, err := supervisor.TakeLock(path)
	switch {
	case err == nil:
		defer func() { _ = lock.Close() }() // closing is letting go
	case errors.Is(err, supervisor.ErrHeld) && p.canSweep(o) && supervisor.ResumeGuardians(o.ID, o.PID): // they end within a moment
		p.again = true
		return false
	case errors.Is(err, supervisor.ErrHeld) || !before || o.Host != me.Host: // without its file, only a reboot of this very host is proof
		return false
	}
	if !before && !lock.Clean() && !p.clear(o, nil, lock.Records()) {
		return false
	}
	reaped, err := p.e.worker.ReapDead(context.Background(), o.Number, now())
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "worker", o.ID, "err", err)
		return false
	}
	if lock != nil {
		_ = lock.Remove() // else the next start does
	}
	if p.tell(reaped); len(reaped) > 0 {
		p.e.log.Warn("took over tasks of a worker that is gone", "tasks", len(reaped), "worker", o.ID)
		p.e.r.notifier.Notify()
	}
	return true
}

// clear sees to it that no process of a dead or hung worker's commands is left: of all of them, or of those that keys name. False:
// there is one that cannot be killed, or nobody can tell.
func (p *reaper) clear(o db.Owner, keys []supervisor.Key, records []supervisor.Record) bool {
	me := p.e.info
	switch {
	case p.canSweep(o):
		denied, clean := supervisor.Sweep(o.ID, keys, records)
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

// expire takes the claims away from workers that do not renew them: it revokes them, kills their processes, and records the loss.
func (p *reaper) expire(owners map[string]db.Owner) {
	ctx := context.Background()
	leases, err := p.e.worker.Leases(ctx)
	if err != nil {
		return // told by the next write
	}
	at := now()
	var lost []db.Lease
	p.seen, lost = p.expired(leases, at.Sub(p.looked))
	p.looked = at
	if len(lost) == 0 {
		return
	}
	revoked, err := p.e.worker.Revoke(ctx, lost)
	if err != nil {
		p.e.log.Warn("cannot take over tasks", "err", err)
		return
	}
	of := map[string][]db.Lease{}
	for _, lease := range revoked {
		of[lease.WorkerID] = append(of[lease.WorkerID], lease)
	}
	for id, revoked := range of {
		if o, known := owners[id]; known && !p.clear(o, keysOf(claimsOf(revoked)), supervisor.ReadRecords(p.e.r.lockPath(id))) {
			continue
		}
		reaped, err := p.e.worker.Reap(ctx, revoked, now())
		if err != nil {
			p.e.log.Warn("cannot take over tasks", "worker", id, "err", err)
			continue
		}
		if p.tell(reaped); len(reaped) > 0 {
			p.e.log.Warn("took over tasks of a worker that hangs", "tasks", len(reaped), "worker", id)
			p.e.r.notifier.Notify()
		}
	}
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

// tell tells of the tasks that failed by being lost once too often.
func (p *reaper) tell(reaped []db.Reaped) {
	for _, r := range reaped {
		if r.Change.State == jobs.Failed {
			p.e.hooks.Failed(r.Task, r.Change)
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

// expired returns what has now been seen, and for how long, and those leases that were seen for their whole length. passed is the time
// since the last look. At most a third of a length counts of it: looks are a sixth apart, so one that is later than that says that this
// process was stopped, and maybe the others, too. They shall have the time to renew before anybody takes their tasks.
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

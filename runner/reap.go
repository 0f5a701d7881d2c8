package runner

import (
	"context"
	"time"

	"example.com/runner/db"
)

// reapEvery is how often the leases of other workers are looked at.
const reapEvery = time.Second

// reap takes over the tasks of workers that hang or died. No two clocks are compared: a lease has expired when this process has
// seen it unchanged for its whole length of monotonic time. So a jump of the wall clock reaps nothing, a process that has just
// started waits for one lease first, and a beat that comes in between saves its task.
//
// While no other worker runs anything, nothing is looked at until somebody has written.
func (e *engine) reap() {
	notices, unsubscribe := e.r.wake.subscribe(context.Background())
	defer unsubscribe()
	seen := map[db.Lease]time.Time{}
	for first := true; ; first = false {
		if len(seen) == 0 && !first {
			select {
			case <-e.stopped:
				return
			case <-notices:
			}
		}
		if !first && !e.pauseOf(reapEvery) {
			return
		}
		leases, err := e.worker.Leases(context.Background())
		if err != nil {
			continue // told by the next write
		}
		var lost []db.Lease
		seen, lost = expired(seen, leases, now(), e.r.options.Lease)
		if len(lost) == 0 {
			continue
		}
		n, err := e.worker.Reap(context.Background(), lost, now())
		if err != nil {
			e.log.Warn("cannot take over tasks", "err", err)
			continue
		}
		if n > 0 {
			e.log.Warn("took over tasks of a worker that is gone", "tasks", n, "worker", lost[0].WorkerID)
			e.r.wake.tell()
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

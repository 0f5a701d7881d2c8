package harness

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// These faults stop and kill workers and their guardians.

// stopDuration returns a random duration between 0.5 and 2.5 times the lease.
func (n *nemesis) stopDuration() time.Duration {
	return Lease/2 + time.Duration(n.random.Int64N(int64(2*Lease)))
}

// stopBriefly stops a worker or some of its guardians, and resumes them after
// the duration d. It skips processes that are already stopped. It returns false
// if it stopped none.
func (n *nemesis) stopBriefly(worker int, pids []int, d time.Duration) bool {
	resume := n.stopProcesses(worker, pids)
	if resume == nil {
		return false
	}

	n.background.Go(func() {
		n.sleep(d)
		resume()
	})
	return true
}

// stopProcesses stops a worker or some of its guardians. It returns a function
// that resumes them in random order, or nil if it stopped none. Only the first
// call of that function has an effect.
func (n *nemesis) stopProcesses(worker int, pids []int) (resumeAll func()) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.notes.add(opStop, 0, 0, strconv.Itoa(worker))
	var halted []int
	for _, pid := range pids {
		if !n.stopped[pid] && stop(pid) == nil {
			n.stopped[pid] = true
			halted = append(halted, pid)
		}
	}

	cont := func() { n.notes.add(opResume, 0, 0, strconv.Itoa(worker)) }
	if halted == nil {
		cont()
		return nil
	}

	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, i := range rand.Perm(len(halted)) {
			delete(n.stopped, halted[i])
			_ = resume(halted[i]) // the process may be dead
		}
		cont()
	})
}

// stopWorker stops a worker. A stopped worker that holds the write lock blocks
// all other workers. So stopWorker resumes such a worker after a quarter of a
// lease.
func (n *nemesis) stopWorker() bool {
	p := n.victim(workerRole)
	if p == nil {
		return false
	}

	n.notes.add(opLocked, 0, 0, "")
	d := n.stopDuration()
	if !n.stopBriefly(p.pid, []int{p.pid}, d) {
		n.notes.add(opUnlocked, 0, 0, "")
		return false
	}

	n.background.Go(func() {
		if n.db.lockHeldFor(50 * time.Millisecond) {
			n.sleep(Lease / 4)
			n.mu.Lock()
			_ = resume(p.pid)
			n.mu.Unlock()
		}
		n.notes.add(opUnlocked, 0, 0, "")
	})
	return true
}

// workerWithGuardians returns a worker and one or all of its guardians. It
// returns nil if the worker has no guardian.
func (n *nemesis) workerWithGuardians() (*proc, []int) {
	p := n.victim(workerRole)
	if p == nil {
		return nil, nil
	}

	guardians := n.someGuardians(p.pid)
	if guardians == nil {
		return nil, nil
	}

	return p, guardians
}

// someGuardians lists either one random guardian of a worker or all of its
// guardians.
func (n *nemesis) someGuardians(worker int) []int {
	guardians := readTree().guardians(worker)
	if len(guardians) == 0 || n.random.IntN(2) == 0 {
		return guardians
	}
	return []int{guardians[n.random.IntN(len(guardians))]}
}

// workersToHit returns how many workers lose guardians at once. It is usually
// 1.
func (n *nemesis) workersToHit() int {
	if n.random.IntN(4) > 0 {
		return 1
	}
	return 2 + n.random.IntN(2)
}

func (n *nemesis) killGuardians() (done bool) {
	for range n.workersToHit() {
		p, guardians := n.workerWithGuardians()
		if p == nil {
			continue
		}
		n.notes.add(opGuardians, 0, 0, strconv.Itoa(p.pid))
		for _, pid := range guardians {
			done = kill(pid) == nil || done
		}
	}

	return done
}

func (n *nemesis) stopGuardians() (done bool) {
	for range n.workersToHit() {
		p, guardians := n.workerWithGuardians()
		if p == nil {
			continue
		}
		n.notes.add(opGuardians, 0, 0, strconv.Itoa(p.pid))
		done = n.stopBriefly(p.pid, guardians, n.stopDuration()) || done
	}
	return done
}

// killBoth kills a worker together with one or all of its guardians, so that
// neither can clean up after the other.
func (n *nemesis) killBoth() bool {
	p := n.victim(workerRole)
	if p == nil {
		return false
	}

	_ = stop(p.pid) // a stopped worker starts no new guardian
	n.notes.add(opGuardians, 0, 0, strconv.Itoa(p.pid))
	for _, pid := range n.someGuardians(p.pid) {
		_ = kill(pid)
	}

	n.notes.add(opKill, 0, 0, strconv.Itoa(p.pid))
	p.kill()
	return true
}

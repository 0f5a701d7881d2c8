package harness

import (
	"slices"
	"strconv"
	"time"
)

const (
	freezeEvery = 14 * time.Second // interval between freezes; it is fixed, because a short run with random intervals might have no freeze
	freezeFirst = 2 * time.Second  // time from the start of the fault injection to the first freeze
)

// resumePauses are limits of the pause between two processes that resume after
// a freeze; each freeze draws one.
var resumePauses = []time.Duration{1, 2 * time.Millisecond, 25 * time.Millisecond}

// freeze stops all processes for longer than a lease and resumes them in random
// order, like the suspend of a laptop. In half of the cases it stops the
// commands as well.
func (n *nemesis) freeze() {
	commands := n.random.IntN(2) == 0
	d := Lease*12/10 + time.Duration(n.random.Int64N(int64(Lease*13/10)))
	n.mu.Lock() // other faults need this lock to resume a process, so no fault can end during the freeze
	defer n.mu.Unlock()

	n.notes.add(opLocked, 0, 0, "")
	defer n.notes.add(opUnlocked, 0, 0, "")

	var frozen []int
	for again := true; again; { // repeat until a search finds no new process; a stopped process starts no others
		again = false
		for _, pid := range n.victims(commands) {
			if !n.stopped[pid] && !slices.Contains(frozen, pid) && stop(pid) == nil {
				frozen, again = append(frozen, pid), true
			}
		}
	}

	n.sleep(d)
	n.random.Shuffle(len(frozen), func(i, j int) { frozen[i], frozen[j] = frozen[j], frozen[i] })
	most := int64(resumePauses[n.random.IntN(len(resumePauses))])
	for _, pid := range frozen {
		_ = resume(pid) // the process may be dead
		time.Sleep(time.Duration(n.random.Int64N(most)))
	}

	n.counts["freeze"]++
}

// victims lists the clients, the workers and their guardians. If commands is
// true, it also lists the processes of commands.
func (n *nemesis) victims(commands bool) (list []int) {
	t := readTree()
	for _, pid := range n.processes.allPIDs() {
		list = append(append(list, pid), t.guardians(pid)...)
		if commands {
			list = append(list, t.commands(pid)...)
		}
	}

	n.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// lockDuringSweep stops a worker and its guardians. After the leases have
// expired, another worker kills their commands. lockDuringSweep then takes the
// write lock and resumes the stopped processes. So the stopped worker runs
// again after the kill, but before the loss can be recorded. In half of the
// cases it also stops the other workers for a moment, so the loss is recorded
// even later.
func (n *nemesis) lockDuringSweep() bool {
	p, t := n.busiest()
	if p == nil {
		return false
	}

	moment, others := time.Duration(n.random.Int64N(int64(Lease/4))), n.random.IntN(2) == 0
	n.notes.add(opGuardians, 0, 0, strconv.Itoa(p.pid))
	resume := n.stopProcesses(p.pid, append(t.guardians(p.pid), p.pid))
	if resume == nil {
		return false
	}

	n.background.Go(func() {
		defer resume() // resume the processes also after an early return

		n.notes.add(opLocked, 0, 0, "")
		defer n.notes.add(opUnlocked, 0, 0, "")

		// give up if the stopped worker holds the write lock, because no other
		// worker could take over its tasks
		if n.db.lockHeldFor(50 * time.Millisecond) {
			n.sleep(Lease / 4)
			return
		}

		n.notes.add(opUnlocked, 0, 0, "")
		begins := n.sweepBegins(p.pid)
		n.notes.add(opLocked, 0, 0, "")
		if !begins {
			return
		}

		var resumes []func()
		n.db.withWriteLock(func() {
			for _, other := range n.processes.running(workerRole) {
				if others && other != p {
					resumes = append(resumes, n.stopProcesses(other.pid, []int{other.pid}))
				}
			}

			n.sleep(moment / 4)
			resume()
			n.sleep(moment / 4)
		})
		n.sleep(moment)
		for _, resume := range resumes {
			if resume != nil {
				resume()
			}
		}
	})
	return true
}

// busiest returns the worker with the most command processes, or nil if no
// worker has any.
func (n *nemesis) busiest() (best *proc, t tree) {
	t = readTree()
	most := 0
	for _, p := range n.processes.running(workerRole) {
		if k := len(t.commands(p.pid)); k > most {
			best, most = p, k
		}
	}

	return best, t
}

// sweepBegins waits until another worker kills a command of a stopped worker.
// It returns false if no command dies in time.
func (n *nemesis) sweepBegins(worker int) bool {
	// List the commands only shortly before the lease ends. Then few of them
	// end by themselves before another worker kills them.
	n.sleep(Lease * 9 / 10)
	commands := readTree().commands(worker)
	for end := time.Now().Add(3 * Lease); len(commands) > 0 && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, pid := range commands {
			if startTime(pid) == 0 {
				return true
			}
		}
	}

	return false
}

package selftest

import (
	"slices"
	"strconv"
	"time"
)

const (
	freezeEvery = 14 * time.Second // by the clock: chance would skip it in a short run
	freezeFirst = 2 * time.Second  // after the beginning
)

// thaws are the longest pauses between two processes that go on after a freeze: one of them is drawn each time.
var resumePauses = []time.Duration{1, 2 * time.Millisecond, 25 * time.Millisecond}

// freeze stops everything for longer than a lease and lets it go on in any order, as the suspend of a laptop does. The commands themselves
// are stopped, too, in half of the cases.
func (n *nemesis) freeze() {
	commands := n.random.IntN(2) == 0
	d := Lease*12/10 + time.Duration(n.random.Int64N(int64(Lease*13/10)))
	n.mu.Lock() // nobody whom an act has stopped goes on meanwhile
	defer n.mu.Unlock()
	n.notes.add(opLocked, 0, 0, "")
	defer n.notes.add(opUnlocked, 0, 0, "")
	var frozen []int
	for again := true; again; { // what is stopped starts nobody, so this comes to an end
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
		_ = resume(pid) // it may be dead
		time.Sleep(time.Duration(n.random.Int64N(most)))
	}
	n.counts["freeze"]++
}

// everybody lists the clients, the workers and their guardians; with commands also what these run.
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

// holdSweep stops a worker and its guardians until another worker takes their leases for expired and kills their commands. Then it holds the
// write lock, lets the stopped ones go on, and frees the lock: they go on between the kill and its record. In half of the cases it stops
// the other workers for a moment, too, so that the record comes late.
func (n *nemesis) holdSweep() bool {
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
		defer resume() // if that was not done
		n.notes.add(opLocked, 0, 0, "")
		defer n.notes.add(opUnlocked, 0, 0, "")
		if n.db.lockHeldFor(50 * time.Millisecond) { // by the worker that stands still: nobody could take anything over
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

// busiest returns the worker that has the most processes of commands, if any has one.
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

// sweepBegins waits until somebody kills commands of a stopped worker: until one dies that has outlived the lease. False: there is none.
func (n *nemesis) sweepBegins(worker int) bool {
	n.sleep(Lease * 9 / 10) // what ends before has ended by itself
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

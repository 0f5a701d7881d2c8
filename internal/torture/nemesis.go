package torture

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// nemesis does what goes wrong on real machines, only more often.
type nemesis struct {
	stage
	cast    *cast
	history *history
	notes   *notebook
	random  *rand.Rand
	server  *Server
	proxies []*proxy
	counts  map[string]int
	beside  sync.WaitGroup
	over    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	stopped map[int]bool // pids
}

// deedOf is something that it does, and how often beside the others.
type deedOf struct {
	name string
	of   int
	do   func(*nemesis) bool // false: there was nobody to do it to
}

// acts are what it does, in a hundred.
var acts = []deedOf{
	{"kill_worker", 42, (*nemesis).killWorker},
	{"stop_worker", 22, (*nemesis).stopWorker},
	{"kill_guardian", 6, (*nemesis).killGuardian},
	{"stop_guardian", 4, (*nemesis).stopGuardian},
	{"kill_both", 6, (*nemesis).killBoth},
	{"end_worker", 5, (*nemesis).endWorker},
	{"kill_enqueuer", 6, (*nemesis).killEnqueuer},
	{"hold_lock", 2, (*nemesis).holdLock},
	{"long_reader", 3, (*nemesis).readLong},
	{"checkpoint", 2, (*nemesis).checkpoint},
	{"burn", 1, (*nemesis).burn},
	{"fill_disk", 1, (*nemesis).fillDisk},
}

func newNemesis(s stage, c *cast, h *history, n *notebook, random *rand.Rand) *nemesis {
	return &nemesis{stage: s, cast: c, history: h, notes: n, random: random, counts: map[string]int{}, over: make(chan struct{}), stopped: map[int]bool{}}
}

// act waits a moment and does one thing.
func (n *nemesis) act() {
	time.Sleep(80*time.Millisecond + time.Duration(n.random.Int64N(int64(100*time.Millisecond))))
	list := acts
	if n.server != nil {
		list = serverActs
	}
	sum := 0
	for _, a := range list {
		sum += a.of
	}
	at := n.random.IntN(sum)
	for _, a := range list {
		if at -= a.of; at < 0 {
			if a.do(n) {
				n.counts[a.name]++
			}
			return
		}
	}
}

func (n *nemesis) killsAndStops() (sum int) {
	for _, name := range []string{"kill_worker", "stop_worker", "kill_guardian", "stop_guardian", "kill_both", "end_worker", "kill_enqueuer"} {
		sum += n.counts[name]
	}
	return sum
}

// victim is somebody with a role, a stopped one seldom.
func (n *nemesis) victim(of role) *actor {
	list := n.cast.actors(of)
	if len(list) == 0 {
		return nil
	}
	for range 3 {
		a := list[n.random.IntN(len(list))]
		if n.mu.Lock(); !n.stopped[a.pid] {
			n.mu.Unlock()
			return a
		}
		n.mu.Unlock()
	}
	return list[n.random.IntN(len(list))]
}

func (n *nemesis) killWorker() bool {
	a := n.victim(working)
	if a == nil {
		return false
	}
	n.notes.add(opKill, 0, 0, strconv.Itoa(a.pid))
	a.kill()
	return true
}

// between 0.5 and 2.5 leases.
func (n *nemesis) stopFor() time.Duration {
	return Lease/2 + time.Duration(n.random.Int64N(int64(2*Lease)))
}

// pause stops a process, and lets it go on later.
func (n *nemesis) pause(pid int, d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped[pid] {
		return false
	}
	n.notes.add(opStop, 0, 0, strconv.Itoa(pid))
	if stop(pid) != nil {
		return false
	}
	n.stopped[pid] = true
	n.beside.Go(func() {
		n.sleep(d)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.stopped, pid)
		_ = goOn(pid) // it may be dead
		n.notes.add(opCont, 0, 0, strconv.Itoa(pid))
	})
	return true
}

// sleep ends early when all is to be healed.
func (n *nemesis) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.over:
	}
}

// stopWorker stops a worker. One that holds the write lock stops everybody, and for a moment only that is what is wanted.
func (n *nemesis) stopWorker() bool {
	a := n.victim(working)
	if a == nil {
		return false
	}
	n.notes.add(opHold, 0, 0, "")
	d := n.stopFor()
	if !n.pause(a.pid, d) {
		n.notes.add(opFree, 0, 0, "")
		return false
	}
	n.beside.Go(func() {
		if n.history.locked(50 * time.Millisecond) {
			n.sleep(Lease / 4)
			n.mu.Lock()
			_ = goOn(a.pid)
			n.mu.Unlock()
		}
		n.notes.add(opFree, 0, 0, "")
	})
	return true
}

func (n *nemesis) killGuardian() bool {
	a := n.victim(working)
	if a == nil {
		return false
	}
	guardians := guardiansOf(a.pid)
	if len(guardians) == 0 {
		return false
	}
	n.notes.add(opGuard, 0, 0, strconv.Itoa(a.pid))
	return kill(guardians[n.random.IntN(len(guardians))]) == nil
}

func (n *nemesis) stopGuardian() bool {
	a := n.victim(working)
	if a == nil {
		return false
	}
	guardians := guardiansOf(a.pid)
	if len(guardians) == 0 {
		return false
	}
	n.notes.add(opGuard, 0, 0, strconv.Itoa(a.pid))
	return n.pause(guardians[n.random.IntN(len(guardians))], n.stopFor())
}

// killBoth kills a worker and its guardians so that neither can clean up after the other.
func (n *nemesis) killBoth() bool {
	a := n.victim(working)
	if a == nil {
		return false
	}
	_ = stop(a.pid)
	guardians := guardiansOf(a.pid)
	if len(guardians) == 0 {
		_ = goOn(a.pid)
		return false
	}
	n.notes.add(opGuard, 0, 0, strconv.Itoa(a.pid))
	for _, guardian := range guardians {
		_ = kill(guardian)
	}
	n.notes.add(opKill, 0, 0, strconv.Itoa(a.pid))
	a.kill()
	return true
}

func (n *nemesis) endWorker() bool {
	a := n.victim(working)
	if a == nil {
		return false
	}
	n.cast.tell(a)
	return true
}

func (n *nemesis) killEnqueuer() bool {
	a := n.victim(enqueuing)
	if a == nil {
		return false
	}
	a.kill()
	return true
}

func (n *nemesis) holdLock() bool {
	n.beside.Go(func() {
		n.notes.add(opHold, 0, 0, "")
		n.history.hold(func() { n.sleep(time.Second) })
		n.notes.add(opFree, 0, 0, "")
	})
	return true
}

func (n *nemesis) readLong() bool {
	n.beside.Go(func() { n.history.read(func() { n.sleep(2 * time.Second) }) })
	return true
}

func (n *nemesis) checkpoint() bool {
	n.beside.Go(func() {
		n.notes.add(opHold, 0, 0, "")
		n.history.truncate()
		n.notes.add(opFree, 0, 0, "")
	})
	return true
}

// burn leaves little of the processor to the others.
func (n *nemesis) burn() bool {
	end := time.Now().Add(time.Duration(300+n.random.IntN(700)) * time.Millisecond)
	for range runtime.NumCPU() {
		n.beside.Go(func() {
			for x := uint64(0); time.Now().Before(end); {
				for range 1 << 16 {
					x = x*6364136223846793005 + 1
				}
			}
		})
	}
	return true
}

const (
	fullMost  = time.Second // that the disk stays full
	smallDisk = 1 << 30     // only such a one is filled: a larger one is somebody's own
	leaveFree = 2 << 20     // bytes, for the histories: less than what the product keeps free, so that it takes nothing on
)

// fillDisk takes the room of a small disk for a while. What runs can still end; nothing is enqueued or claimed.
func (n *nemesis) fillDisk() bool {
	free, total := diskSpace(n.dir)
	if total == 0 || total > smallDisk || free <= leaveFree {
		return false
	}
	filler := n.dir + "/filler"
	if err := os.WriteFile(filler, make([]byte, free-leaveFree), 0o600); err != nil {
		_ = os.Remove(filler) // others were quicker with the rest
		return false
	}
	d := fullMost/4 + time.Duration(n.random.Int64N(int64(fullMost*3/4)))
	n.beside.Go(func() {
		n.sleep(d)
		_ = os.Remove(filler)
	})
	return true
}

// heal undoes what can be undone.
func (n *nemesis) heal() {
	n.once.Do(func() { close(n.over) })
	n.beside.Wait()
}

package harness

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The nemesis is the part of the selftest that injects faults: those that real
// machines have, but much more often. After the run, evidence.judge compares
// the recorded histories with the invariants. The rules:
//
//   - A fault must be possible on a user's machine: SIGKILL, SIGSTOP, a full
//     disk, a lost connection, a suspended laptop.
//   - The nemesis acts from outside, with signals, SQL, the network and the
//     disk. Runner's code has no hooks for it.
//   - Before a fault whose effects look like a violation it writes a note
//     (notes.go), and judge accepts these effects.
//   - Before a fault that can block all writers it writes the note opLocked,
//     and judge subtracts its duration from the measured delays and leases.
//   - Every fault ends. A stopped process that holds the write lock is resumed
//     early, because all others wait for it.

// nemesis injects faults and holds the state of the fault injection.
type nemesis struct {
	workspace
	processes  *processes
	db         *database
	notes      *notesFile
	random     *rand.Rand
	cluster    *cluster
	proxies    []*proxy
	counts     map[string]int
	background sync.WaitGroup
	stopping   chan struct{}
	once       sync.Once

	mu         sync.Mutex
	stopped    map[int]bool // pids of stopped processes
	violations []Violation  // violations that were found in extra databases; see side_database.go

	// A fault that can destroy the content of a database gets an extra
	// database, a side database; see side_database.go.
	sideDatabases int         // number of extra databases that were created
	sideBusy      atomic.Bool // whether an extra database is in use
}

// fault is a fault that the nemesis can inject.
type fault struct {
	name   string
	weight int                 // relative frequency
	do     func(*nemesis) bool // do injects the fault; it returns false if it did nothing
}

// faults are the faults for any database, in a SQLite file or on a server. In
// addition, the nemesis freezes all processes at fixed intervals; see
// freezeEvery.
var faults = []fault{
	{"kill_worker", 40, (*nemesis).killWorker},
	{"stop_worker", 20, (*nemesis).stopWorker},
	{"kill_guardian", 9, (*nemesis).killGuardians},
	{"stop_guardian", 7, (*nemesis).stopGuardians},
	{"kill_both", 6, (*nemesis).killBoth},
	{"end_worker", 5, (*nemesis).endWorker},
	{"kill_enqueuer", 6, (*nemesis).killEnqueuer},
	{"hold_lock", 2, (*nemesis).holdLock},
	{"hold_sweep", 3, (*nemesis).lockDuringSweep},
	{"long_reader", 3, (*nemesis).readLong},
	{"checkpoint", 2, (*nemesis).checkpoint},
	{"burn", 1, (*nemesis).burnCPU},
}

// fileFaults are the faults for a database in a SQLite file.
var fileFaults = append([]fault{
	{"fill_disk", 1, (*nemesis).fillDisk},
	{"bind_mount", 2, (*nemesis).bindMount},
	{"remove_shm", 2, (*nemesis).removeShm},
}, faults...)

func newNemesis(w workspace, ps *processes, db *database, n *notesFile, random *rand.Rand) *nemesis {
	return &nemesis{workspace: w, processes: ps, db: db, notes: n, random: random, counts: map[string]int{},
		stopping: make(chan struct{}), stopped: map[int]bool{}}
}

// injectOne waits a moment and injects one random fault.
func (n *nemesis) injectOne() {
	time.Sleep(80*time.Millisecond + time.Duration(n.random.Int64N(int64(100*time.Millisecond))))
	list := fileFaults
	if n.cluster != nil {
		list = serverFaults
	}

	sum := 0
	for _, p := range list {
		sum += p.weight
	}

	at := n.random.IntN(sum)
	for _, p := range list {
		if at -= p.weight; at < 0 {
			if p.do(n) {
				n.counts[p.name]++
			}
			return
		}
	}
}

func (n *nemesis) killsAndStops() (sum int) {
	for _, name := range []string{"kill_worker", "stop_worker", "kill_guardian", "stop_guardian", "kill_both", "end_worker",
		"kill_enqueuer", "hold_sweep", "freeze"} {
		sum += n.counts[name]
	}
	return sum
}

// victim returns a random process of the given role. It prefers processes that
// aren't stopped.
func (n *nemesis) victim(of role) *proc {
	list := n.processes.running(of)
	if len(list) == 0 {
		return nil
	}

	for range 3 {
		p := list[n.random.IntN(len(list))]
		if n.mu.Lock(); !n.stopped[p.pid] {
			n.mu.Unlock()
			return p
		}
		n.mu.Unlock()
	}

	return list[n.random.IntN(len(list))]
}

func (n *nemesis) killWorker() bool {
	p := n.victim(workerRole)
	if p == nil {
		return false
	}

	n.notes.add(opKill, 0, 0, strconv.Itoa(p.pid))
	p.kill()
	return true
}

// sleep waits for the duration d, or until the nemesis stops.
func (n *nemesis) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.stopping:
	}
}

func (n *nemesis) isStopping() bool {
	select {
	case <-n.stopping:
		return true
	default:
		return false
	}
}

func (n *nemesis) endWorker() bool {
	p := n.victim(workerRole)
	if p == nil {
		return false
	}
	n.processes.terminate(p)
	return true
}

func (n *nemesis) killEnqueuer() bool {
	p := n.victim(enqueuerRole)
	if p == nil {
		return false
	}
	p.kill()
	return true
}

func (n *nemesis) holdLock() bool {
	n.background.Go(func() {
		n.notes.add(opLocked, 0, 0, "")
		n.db.withWriteLock(func() { n.sleep(time.Second) })
		n.notes.add(opUnlocked, 0, 0, "")
	})
	return true
}

func (n *nemesis) readLong() bool {
	n.background.Go(func() { n.db.withSnapshot(func() { n.sleep(2 * time.Second) }) })
	return true
}

func (n *nemesis) checkpoint() bool {
	n.background.Go(func() {
		n.notes.add(opLocked, 0, 0, "")
		n.db.checkpoint()
		n.notes.add(opUnlocked, 0, 0, "")
	})
	return true
}

// burnCPU uses all processors for a moment.
func (n *nemesis) burnCPU() bool {
	end := time.Now().Add(time.Duration(300+n.random.IntN(700)) * time.Millisecond)
	for range runtime.NumCPU() {
		n.background.Go(func() {
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
	maxDiskFull = time.Second // longest time for which the disk stays full
	smallDisk   = 1 << 30     // size in bytes of the largest disk that fillDisk fills; other programs may use a larger disk
	leaveFree   = 2 << 20     // bytes that stay free for the histories; with so little free space, runner accepts no new work
)

// fillDisk fills a small disk for a moment. While the disk is full, running
// tasks can still finish, but runner enqueues and claims no tasks.
func (n *nemesis) fillDisk() bool {
	free, total := diskSpace(n.dir)
	if total == 0 || total > smallDisk || free <= leaveFree {
		return false
	}

	filler := n.dir + "/filler"
	if err := os.WriteFile(filler, make([]byte, free-leaveFree), 0o600); err != nil {
		_ = os.Remove(filler) // the file didn't fit: other processes have used free space meanwhile
		return false
	}

	d := maxDiskFull/4 + time.Duration(n.random.Int64N(int64(maxDiskFull*3/4)))
	n.background.Go(func() {
		n.sleep(d)
		_ = os.Remove(filler)
	})
	return true
}

// stop ends all faults that are in progress and waits for them.
func (n *nemesis) stop() {
	n.once.Do(func() { close(n.stopping) })
	n.background.Wait()
}

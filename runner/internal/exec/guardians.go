package exec

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// A worker runs each command under a guardian: a process that kills the command when the worker dies or does not renew its lease. A
// guardian is another process of the same program, and its start takes some milliseconds. So a worker keeps idle guardians for later
// commands.
//
// The invariants:
//
//   - A guardian guards at most one command at a time.
//   - Each guardian holds the liveness lock of its worker. So the lock is free only when the worker and all its guardians are dead.
//   - If the first guardian does not start, the worker ends, because it can run no command. If a later guardian does not start for lack
//     of resources, the task goes back to its queue and the worker continues.
//   - A guardian that ends before it has started a command counts as a failure. After maxFailures failures in a row the worker ends.

// guardianCalled is true after main has called Guardian.
var guardianCalled atomic.Bool

// Guardian does the work of a guardian if this process is one, and returns true afterwards. It must be the first call in main.
func Guardian(version string) bool {
	guardianCalled.Store(true)
	return supervisor.Guard(version)
}

const (
	maxFailures = 3           // number of guardians in a row that have started no command, after which the worker ends
	maxIdle     = time.Minute // time after which an idle guardian is closed; one idle guardian always stays
)

// GuardiansOptions configure Guardians.
type GuardiansOptions struct {
	Path    string           // program of the guardians; empty for this program
	Version string           // version of the program
	Worker  string           // id of the worker
	Lock    *supervisor.Lock // liveness lock of the worker, which its guardians hold too; nil on systems without such locks
	Log     *slog.Logger
	Fail    func(error)     // called to end the worker with an error
	Stopped <-chan struct{} // closed when the worker ends
}

// Guardians are the guardian processes of a worker. A guardian guards one command at a time. Guardians starts a new guardian when a command
// has to start and no guardian is idle. It keeps the guardian for later commands.
type Guardians struct {
	o     GuardiansOptions
	first sync.Once // makes sure that only one caller starts the first guardian

	mu       sync.Mutex
	slots    map[int]*supervisor.Guardian // guardians by slot number; the value is nil while the guardian starts
	idle     []idleGuardian               // idle guardians in the order in which they became idle; a command gets the last one
	failures int                          // number of guardians in a row that have started no command
	worked   bool                         // whether a guardian has started without an error
	over     bool                         // whether no more guardians may start
}

// idleGuardian is a guardian without a command.
type idleGuardian struct {
	*supervisor.Guardian
	since time.Time
}

// CheckGuardian returns an error if this program cannot guard commands. The parameter "path" is the program of the guardians; it is empty
// for this program.
func CheckGuardian(path string) error {
	if supervisor.HasGuardians && !guardianCalled.Load() && path == "" {
		return &jobs.Error{Kind: jobs.ErrInvalid, What: "commands cannot run unguarded",
			Why: []string{"main does not begin with: if runner.Guardian() { return }"}, Hint: "add it, or set Options.GuardianPath"}
	}
	return nil
}

// NewGuardians returns Guardians. It does not start a process yet.
func NewGuardians(o GuardiansOptions) *Guardians {
	return &Guardians{o: o, slots: map[int]*supervisor.Guardian{}}
}

// Prepare starts the first guardian, unless an earlier call has done so. If the start fails, launch reports the error to
// GuardiansOptions.Fail.
func (g *Guardians) Prepare() {
	g.first.Do(func() {
		if guardian, err := g.launch(); err == nil {
			g.put(guardian)
		}
	})
}

// take returns an idle guardian, or starts one.
func (g *Guardians) take() (*supervisor.Guardian, error) {
	g.Prepare()
	g.mu.Lock()
	if last := len(g.idle) - 1; last >= 0 && !g.over {
		guardian := g.idle[last].Guardian
		g.idle = g.idle[:last]
		g.mu.Unlock()
		return guardian, nil
	}
	g.mu.Unlock()
	return g.launch()
}

// launch starts a guardian in the first free slot.
func (g *Guardians) launch() (*supervisor.Guardian, error) {
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		return nil, fmt.Errorf("%w: the work is over", supervisor.ErrRefused)
	}
	slot := 0
	for _, used := g.slots[slot]; used; _, used = g.slots[slot] {
		slot++
	}
	g.slots[slot] = nil
	g.mu.Unlock()
	guardian, err := supervisor.StartGuardian(supervisor.GuardianOptions{Path: g.o.Path, Version: g.o.Version, Worker: g.o.Worker,
		Lock: g.o.Lock, Slot: slot})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		delete(g.slots, slot)
		if !g.worked || !supervisor.OutOfResources(err) {
			g.failed(err, !g.worked && !errors.Is(err, supervisor.ErrLost))
		}
		return nil, fmt.Errorf("%w: %w", supervisor.ErrRefused, err)
	}
	if g.over { // Close was called while this guardian started
		delete(g.slots, slot)
		go func() { _ = guardian.Close() }()
		return nil, fmt.Errorf("%w: the work is over", supervisor.ErrRefused)
	}
	g.slots[slot], g.worked = guardian, true
	go g.watch(slot, guardian)
	return guardian, nil
}

// failed counts a guardian that has started no command. It ends the worker if the parameter "end" is true, or after maxFailures failures in
// a row. The caller holds the mutex.
func (g *Guardians) failed(err error, end bool) {
	if g.failures++; (end || g.failures >= maxFailures) && !g.over {
		g.over = true
		g.o.Fail(err)
	}
}

// watch waits for the end of a guardian, and removes it from the slots. If the guardian ran a command, that command is dead by then, and
// its attempt ends as lost.
func (g *Guardians) watch(slot int, guardian *supervisor.Guardian) {
	select {
	case <-guardian.Done(): // this channel is never closed on systems without guardians
	case <-g.o.Stopped:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.slots, slot)
	g.idle = slices.DeleteFunc(g.idle, func(i idleGuardian) bool { return i.Guardian == guardian })
	switch {
	case guardian.EndExpected():
	case guardian.Served():
		g.o.Log.Warn("a guardian died, and its command with it", "pid", guardian.Pid())
	default:
		g.o.Log.Warn("a guardian died before it had started a command", "pid", guardian.Pid())
		g.failed(fmt.Errorf("%d guardians in a row died before they had started a command", maxFailures), false)
	}
}

// start starts a command under a guardian, which kills the command at deadline.
func (g *Guardians) start(c supervisor.Command, key supervisor.Key, deadline time.Time) (*supervisor.Child, error) {
	for {
		guardian, err := g.take()
		if err != nil {
			return nil, err
		}
		child, err := guardian.Start(c, key, deadline)
		switch {
		case err == nil:
			return child, nil
		// ErrGone means that the guardian has died while it was idle; the loop then tries another guardian
		case !errors.Is(err, supervisor.ErrGone):
			g.put(guardian)
			return nil, err
		}
	}
}

// put keeps a guardian for the next command, if the guardian is able to start one.
func (g *Guardians) put(guardian *supervisor.Guardian) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if guardian.Idle() && !g.over {
		g.idle = append(g.idle, idleGuardian{guardian, now()})
	}
}

// release takes back the guardian of a command that has ended. It logs the processes that the command has left behind.
func (g *Guardians) release(task int64, child *supervisor.Child, exit supervisor.Exit) {
	switch {
	case exit.LeftOver > 0:
		g.o.Log.Warn("killed processes that the command left behind", "task", task, "processes", exit.LeftOver,
			"hint", "the task option leave_children lets them live on")
	case exit.Left > 0:
		g.o.Log.Info("processes that the command left behind live on", "task", task, "processes", exit.Left)
	}
	for _, p := range exit.Denied {
		g.o.Log.Warn("a process of another user has outlived its task and cannot be killed",
			"task", task, "pid", p.PID, "name", p.Name, "uid", p.UID)
	}
	if child.Guardian().Served() {
		g.mu.Lock()
		g.failures = 0
		g.mu.Unlock()
	}
	g.put(child.Guardian())
}

// Renew sends the renewed leases and their deadline to the guardians. It also checks that the guardians are alive, and closes guardians
// that have been idle for more than maxIdle.
func (g *Guardians) Renew(keys []supervisor.Key, deadline time.Time) {
	g.mu.Lock()
	all := g.all()
	var spare []idleGuardian
	for len(g.idle) > 1 && now().Sub(g.idle[0].since) > maxIdle {
		spare = append(spare, g.idle[0])
		g.idle = g.idle[1:]
	}
	g.mu.Unlock()
	for _, guardian := range all {
		guardian.Renew(keys, deadline)
	}
	for _, guardian := range spare {
		go func() { _ = guardian.Close() }()
	}
}

// all returns the guardians that have started and have not ended. The caller holds the mutex.
func (g *Guardians) all() []*supervisor.Guardian {
	return slices.DeleteFunc(slices.Collect(maps.Values(g.slots)), func(guardian *supervisor.Guardian) bool { return guardian == nil })
}

// Close ends the guardians. It returns false if processes of their commands may be left.
func (g *Guardians) Close() bool {
	g.mu.Lock()
	g.over = true
	all := g.all()
	g.mu.Unlock()
	var ends sync.WaitGroup
	var dirty atomic.Bool
	for _, guardian := range all {
		ends.Go(func() {
			if err := guardian.Close(); err != nil {
				dirty.Store(true)
				g.o.Log.Error("a guardian does not end", "pid", guardian.Pid(), "err", err)
			}
		})
	}
	ends.Wait()
	return !dirty.Load()
}

// IsLoss reports whether a command was lost: its guardian died, or killed it because the lease had expired.
func IsLoss(err error) bool {
	return errors.Is(err, supervisor.ErrLost) || errors.Is(err, supervisor.ErrDeadline)
}

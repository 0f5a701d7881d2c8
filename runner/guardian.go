package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

var hooked atomic.Bool

// Guardian must be the first call in the main function of a program that runs commands:
//
//	if runner.Guardian() {
//		return
//	}
//
// It returns false at once, and Work then finds that it was called. A worker starts its own program once
// more for each command that runs at the same time: that process starts the command, and kills all of the command's processes when it ends and
// when the worker is killed or stopped for too long. In that process Guardian returns true when its work is done. Package initialisation runs there, too. See also Options.GuardianPath.
func Guardian() bool {
	hooked.Store(true)
	return supervisor.Guard(Version)
}

const (
	failuresMost = 3           // of guardians in a row that ended without ever having started a command: then the work ends
	idleMost     = time.Minute // before a guardian that has nothing to do is closed; the last one stays
)

// guard has the guardians of a Work. Each guards one command at a time. One is started when a command has to be started and none is idle,
// and kept for the commands that follow.
type guard struct {
	e     *engine
	first sync.Once // starts a guardian

	mu       sync.Mutex
	slots    map[int]*supervisor.Guardian // nil: it is being started
	idle     []idleGuardian               // the latest last: it is taken first
	failures int
	worked   bool // a guardian was started
	over     bool
}

type idleGuardian struct {
	*supervisor.Guardian
	since time.Time
}

// newGuard returns an error if the program has no way to guard commands.
func newGuard(e *engine) (*guard, error) {
	if supervisor.HasGuardians && !hooked.Load() && e.r.options.GuardianPath == "" {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "commands cannot run unguarded",
			Why: []string{"main does not begin with: if runner.Guardian() { return }"}, Hint: "add it, or set Options.GuardianPath"}
	}
	return &guard{e: e, slots: map[int]*supervisor.Guardian{}}, nil
}

// prepare starts the first guardian, unless that was done. Its error ends the work.
func (g *guard) prepare() {
	g.first.Do(func() {
		if guardian, err := g.launch(); err == nil {
			g.put(guardian)
		}
	})
}

// take returns an idle guardian, or starts one.
func (g *guard) take() (*supervisor.Guardian, error) {
	g.prepare()
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
func (g *guard) launch() (*supervisor.Guardian, error) {
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
	o := g.e.r.options
	guardian, err := supervisor.StartGuardian(supervisor.GuardianOptions{Path: o.GuardianPath, Version: Version, Worker: g.e.info.ID, Lock: g.e.lock, Slot: slot,
		Adopt: o.OwnProcess})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		delete(g.slots, slot)
		if !g.worked || !supervisor.OutOfResources(err) {
			g.failed(err, !g.worked && !errors.Is(err, supervisor.ErrLost))
		}
		return nil, fmt.Errorf("%w: %w", supervisor.ErrRefused, err)
	}
	if g.over { // closed meanwhile
		delete(g.slots, slot)
		go func() { _ = guardian.Close() }()
		return nil, fmt.Errorf("%w: the work is over", supervisor.ErrRefused)
	}
	if !g.worked && guardian.MarkError() != "" {
		g.e.log.Warn("processes cannot be marked: those of commands that outlive this worker and their guardian are not found", "err", guardian.MarkError())
	}
	g.slots[slot], g.worked = guardian, true
	go g.watch(slot, guardian)
	return guardian, nil
}

// failed counts a guardian that was of no use. The mutex is held.
func (g *guard) failed(err error, end bool) {
	if g.failures++; (end || g.failures >= failuresMost) && !g.over {
		g.over = true
		g.e.fail(err)
	}
}

// watch notices the end of a guardian. Its command is dead by then, and the attempt records its loss.
func (g *guard) watch(slot int, guardian *supervisor.Guardian) {
	select {
	case <-guardian.Done(): // never, on systems without guardians
	case <-g.e.stopped:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.slots, slot)
	g.idle = slices.DeleteFunc(g.idle, func(i idleGuardian) bool { return i.Guardian == guardian })
	switch {
	case guardian.EndExpected():
	case guardian.Served():
		g.e.log.Warn("a guardian died, and its command with it", "pid", guardian.Pid())
	default:
		g.e.log.Warn("a guardian died before it had started a command", "pid", guardian.Pid())
		g.failed(fmt.Errorf("%d guardians in a row died before they had started a command", failuresMost), false)
	}
}

// start starts a command as attempt c, to be killed at deadline.
func (g *guard) start(ctx context.Context, c supervisor.Command, claim db.ClaimID, deadline time.Time) (*supervisor.Child, error) {
	for {
		guardian, err := g.take()
		if err != nil {
			return nil, err
		}
		child, err := guardian.Start(ctx, c, supervisor.Key{ID: claim.ID, Generation: claim.GenerationID}, deadline)
		switch {
		case err == nil:
			g.mu.Lock()
			g.failures = 0
			g.mu.Unlock()
			return child, nil
		case !errors.Is(err, supervisor.ErrGone): // else it died while it was idle, and another takes its place
			g.put(guardian)
			return nil, err
		}
	}
}

// put keeps a guardian for the next command, if it can take one.
func (g *guard) put(guardian *supervisor.Guardian) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if guardian.Idle() && !g.over {
		g.idle = append(g.idle, idleGuardian{guardian, now()})
	}
}

// ended takes the guardian of a command back, and tells of the processes that it could not kill.
func (g *guard) ended(task int64, child *supervisor.Child, denied []supervisor.MarkedProcess) {
	for _, p := range denied {
		g.e.log.Warn("a process of another user has outlived its task and cannot be killed", "task", task, "pid", p.PID, "name", p.Name, "uid", p.UID)
	}
	g.put(child.Guardian())
}

// beat tells the guardians of leases that were renewed, and asks whether they live. It closes those that have had nothing to do for long.
func (g *guard) beat(renewed []db.ClaimID, deadline time.Time) {
	keys := make([]supervisor.Key, len(renewed))
	for i, claim := range renewed {
		keys[i] = supervisor.Key{ID: claim.ID, Generation: claim.GenerationID}
	}
	g.mu.Lock()
	all := g.all()
	var spare []idleGuardian
	for len(g.idle) > 1 && now().Sub(g.idle[0].since) > idleMost {
		spare = append(spare, g.idle[0])
		g.idle = g.idle[1:]
	}
	g.mu.Unlock()
	for _, guardian := range all {
		guardian.Renew(keys, deadline)
		guardian.Ping()
	}
	for _, guardian := range spare {
		go func() { _ = guardian.Close() }()
	}
}

// all lists the guardians that have been started and have not ended. The mutex is held.
func (g *guard) all() []*supervisor.Guardian {
	return slices.DeleteFunc(slices.Collect(maps.Values(g.slots)), func(guardian *supervisor.Guardian) bool { return guardian == nil })
}

// close ends the guardians, and returns false when something of their commands may be left.
func (g *guard) close() bool {
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
				g.e.log.Error("a guardian does not end", "pid", guardian.Pid(), "err", err)
			}
		})
	}
	ends.Wait()
	return !dirty.Load()
}

// isLoss says whether a command came to its end with its guardian, or by its lease.
func isLoss(err error) bool {
	return errors.Is(err, supervisor.ErrLost) || errors.Is(err, supervisor.ErrDeadline)
}

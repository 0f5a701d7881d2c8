package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/process"
	"example.com/runner/jobs"
)

var hooked atomic.Bool

// Guardian must be the first call in the main function of a program that runs commands:
//
//	if runner.Guardian() {
//		return
//	}
//
// It returns false at once, and Work then finds that it was called. A worker that runs commands starts its own program a second time
// to guard them: it starts them, and kills all of their processes when the worker is killed or stopped for too long. In that
// process Guardian returns true when its work is done. Package initialisation runs there, too. See also Options.GuardianPath.
func Guardian() bool {
	hooked.Store(true)
	return process.Guard(Version)
}

const (
	deathsMost   = 3           // of guardians ...
	deathsWithin = time.Minute // ... in so long a time end the work
)

// guard is the guardian of a Work: started when first needed, and replaced when it dies.
type guard struct {
	e *engine

	mu      sync.Mutex // held while one is started
	current *process.Guardian
	deaths  []time.Time
	over    bool
}

// newGuard returns an error if the program has no way to guard commands.
func newGuard(e *engine) (*guard, error) {
	if process.Guarded && !hooked.Load() && e.r.options.GuardianPath == "" {
		return nil, &jobs.Problem{Kind: jobs.ErrInvalid, What: "commands cannot run unguarded",
			Why: []string{"main does not begin with: if runner.Guardian() { return }"}, Try: "add it, or set Options.GuardianPath"}
	}
	return &guard{e: e}, nil
}

// get returns the guardian, and starts one if there is none. When it cannot, the work ends.
func (g *guard) get() (*process.Guardian, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return nil, fmt.Errorf("%w: the work is over", process.ErrRefused)
	case g.current != nil:
		return g.current, nil
	}
	o := g.e.r.options
	guardian, err := process.StartGuardian(process.GuardianOptions{Path: o.GuardianPath, Version: Version, Worker: g.e.info.ID, Lock: g.e.lock, Adopt: o.OwnProcess})
	if err != nil {
		g.over = true
		g.e.fail(err)
		return nil, fmt.Errorf("%w: %w", process.ErrRefused, err)
	}
	g.current = guardian
	go g.watch(guardian)
	return guardian, nil
}

// watch notices the death of a guardian. Its commands are dead by then, and their attempts record their loss.
func (g *guard) watch(guardian *process.Guardian) {
	select {
	case <-guardian.Done():
	case <-g.e.stopped:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.current = nil
	at := now()
	g.deaths = append(g.deaths, at)
	for at.Sub(g.deaths[0]) > deathsWithin {
		g.deaths = g.deaths[1:]
	}
	g.e.log.Warn("the guardian died, and the commands with it", "pid", guardian.Pid())
	if len(g.deaths) >= deathsMost {
		g.over = true
		g.e.fail(fmt.Errorf("the guardian died %d times in %v", deathsMost, deathsWithin))
	}
}

// start starts a command as attempt c, to be killed at deadline.
func (g *guard) start(ctx context.Context, c process.Command, claim db.ClaimID, deadline time.Time) (*process.Child, error) {
	guardian, err := g.get()
	if err != nil {
		return nil, err
	}
	return guardian.Start(ctx, c, process.Key{ID: claim.ID, Generation: claim.GenerationID}, deadline)
}

// beat tells the guardian of leases that were renewed, and asks whether it lives.
func (g *guard) beat(renewed []db.ClaimID, deadline time.Time) {
	g.mu.Lock()
	guardian := g.current
	g.mu.Unlock()
	if guardian == nil {
		return
	}
	keys := make([]process.Key, len(renewed))
	for i, claim := range renewed {
		keys[i] = process.Key{ID: claim.ID, Generation: claim.GenerationID}
	}
	guardian.Renew(keys, deadline)
	guardian.Ping()
}

// close ends the guardian, and returns false when something of its commands may be left.
func (g *guard) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.current == nil {
		return g.e.lock == nil || g.e.lock.Mark() == process.Clean
	}
	err := g.current.Close()
	if err != nil {
		g.e.log.Error("the guardian does not end", "err", err)
	}
	return err == nil
}

// isLoss says whether a command came to its end with its guardian, or by its lease.
func isLoss(err error) bool {
	return errors.Is(err, process.ErrLost) || errors.Is(err, process.ErrDeadline)
}

package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Each Work holds a liveness lock, a file of its own beside the database, named by its worker's id. Where the system has none
// there is no lock, and other workers go by leases alone.

const (
	lockAge = time.Minute // before a lock file that belongs to nobody is removed: its worker may not have said hello yet
)

// lockPath returns where the lock of a worker is. It is empty for a text that is not the id of a worker.
func (r *Runner) lockPath(worker string) string { return supervisor.LockPath(r.store.Dir(), worker) }

// newLock makes and takes the lock of a new worker; nil where there are no locks.
func (r *Runner) newLock(worker string) (*supervisor.Lock, error) {
	if err := r.store.MakeDir(); err != nil {
		return nil, err
	}
	lock, err := supervisor.NewLock(r.lockPath(worker))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return nil, fmt.Errorf("%w: make the liveness lock: %w", jobs.ErrFull, err)
	case err != nil:
		return nil, fmt.Errorf("make the liveness lock: %w", err)
	}
	return lock, nil
}

// keepDir makes the directory beside the database again if somebody has removed it. The liveness lock stays as checkLock says: its file
// cannot be had back, and a new one would be free while the guardian, which holds the old one, still has commands to kill.
func (e *engine) keepDir() {
	if e.r.store.Replaced() != nil {
		return // it goes with the database
	}
	if err := e.r.store.MakeDir(); err != nil {
		e.log.Warn("cannot make the directory beside the database", "err", err)
	}
}

// checkLock looks whether the lock can still be found where others look for it. Without its file this worker is protected by its
// leases alone; with another in its place, others may take this worker for dead, so it claims nothing more.
func (e *engine) checkLock() {
	if e.lock == nil {
		return
	}
	intact, present := e.lock.Intact()
	switch {
	case intact:
	case present && e.lockLost.Swap(lockReplaced) != lockReplaced:
		e.log.Error("the lock file was replaced: nothing more is claimed", "file", e.lock.Path())
	case !present && e.lockLost.CompareAndSwap(0, lockRemoved):
		e.log.Warn("the lock file was removed: others will notice the death of this worker by its leases only", "file", e.lock.Path())
	}
}

// The values of engine.lockLost.
const (
	lockRemoved = iota + 1
	lockReplaced
)

// removeStrayLocks removes the lock files that belong to no live worker.
func (r *Runner) removeStrayLocks(live map[string]bool) {
	entries, err := os.ReadDir(r.store.Dir())
	if err != nil {
		return
	}
	for _, entry := range entries {
		worker, isLock := strings.CutSuffix(entry.Name(), supervisor.LockSuffix)
		info, err := entry.Info()
		if !isLock || live[worker] || err != nil || now().Sub(info.ModTime()) < lockAge || r.lockPath(worker) == "" {
			continue // init.lock is no worker's
		}
		if lock, err := supervisor.TakeLock(r.lockPath(worker)); err == nil {
			_ = lock.Remove() // tried again by the next start
			_ = lock.Close()
		}
	}
}

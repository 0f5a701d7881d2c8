package engine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Each worker holds a liveness lock on a file of its own beside the database, which has the id of the worker as its name. The system
// releases the lock when the worker and its guardians are dead. On systems without such locks, other workers rely on leases alone.

// strayAge is the least age of a lock file without a worker that start removes. A younger file may belong to a worker that is about to
// register.
const strayAge = time.Minute

// newLock makes and takes the lock of a new worker. It returns nil on systems without locks.
func newLock(store *db.DB, worker string) (*supervisor.Lock, error) {
	if err := store.MakeDir(); err != nil {
		return nil, err
	}
	lock, err := supervisor.NewLock(supervisor.LockPath(store.Dir(), worker))
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

// Dead reports whether the liveness lock of a worker shows that it is dead. It returns false if this machine has no such lock.
func Dead(store *db.DB, worker string) bool {
	return supervisor.Free(supervisor.LockPath(store.Dir(), worker))
}

// unlock releases the liveness lock. If processes or tasks may be left behind (not clean), the file stays: the worker that takes the lock
// looks after them.
func (e *Engine) unlock(clean bool) {
	if e.lock == nil {
		return
	}
	if clean {
		_ = e.lock.Remove() // the start of the next worker removes a file that is left
	}
	_ = e.lock.Close()
}

// keepDir makes the directory beside the database again if someone has removed it. It does not make the lock file again: the file cannot
// be recovered, and a new one would be free while the guardians, which hold the old one, still have commands to kill.
func (e *Engine) keepDir() {
	if e.store.Replaced() != nil {
		return // the directory goes with the database
	}
	if err := e.store.MakeDir(); err != nil {
		e.log.Warn("cannot make the directory beside the database", "err", err)
	}
}

// The values of Engine.lockState.
const (
	lockRemoved = iota + 1
	lockReplaced
)

// checkLock checks that the lock file is where others look for it. If the file was removed, only the leases protect this worker. If
// another file replaces it, others may take this worker for dead, so the worker claims nothing more.
func (e *Engine) checkLock() {
	if e.lock == nil {
		return
	}
	intact, present := e.lock.Intact()
	switch {
	case intact:
	case present && e.lockState.Swap(lockReplaced) != lockReplaced:
		e.log.Error("the lock file was replaced: this worker claims no more tasks", "file", e.lock.Path())
	case !present && e.lockState.CompareAndSwap(0, lockRemoved):
		e.log.Warn("the lock file was removed: other workers take over from this worker only after its leases end", "file", e.lock.Path())
	}
}

// removeStrayLocks removes the lock files that belong to no live worker.
func (e *Engine) removeStrayLocks(live map[string]bool) {
	entries, err := os.ReadDir(e.store.Dir())
	if err != nil {
		return
	}
	for _, entry := range entries {
		worker, isLock := strings.CutSuffix(entry.Name(), supervisor.LockSuffix)
		path := supervisor.LockPath(e.store.Dir(), worker)
		info, err := entry.Info()
		if !isLock || live[worker] || err != nil || now().Sub(info.ModTime()) < strayAge || path == "" {
			continue // path is empty for init.lock, which belongs to no worker
		}
		if lock, err := supervisor.TakeLock(path); err == nil {
			_ = lock.Remove() // the next start tries again
			_ = lock.Close()
		}
	}
}

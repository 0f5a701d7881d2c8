package engine

import (
	"errors"
	"fmt"
	"syscall"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Each worker holds a liveness lock. It is a lock on a file that belongs to
// this worker alone, in the directory beside the database. The name of the file
// is the id of the worker. The system releases the lock when the worker and its
// guardians are dead. On systems without such locks, other workers rely on
// leases alone.

// newLock creates the lock file of a new worker and takes the lock. It returns
// nil on systems without locks.
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

// Dead reports whether the liveness lock of a worker is free, which shows that
// the worker is dead. It returns false if this machine has no such lock.
func Dead(store *db.DB, worker string) bool {
	return supervisor.Free(supervisor.LockPath(store.Dir(), worker))
}

// unlock releases the liveness lock. If clean is true, it also removes the lock
// file. If clean is false, processes or tasks of this worker may be left. The
// lock file then stays, and the worker that takes the lock later cleans up.
func (e *Engine) unlock(clean bool) {
	if e.lock == nil {
		return
	}
	if clean {
		_ = e.lock.Remove() // if this fails, the next worker that starts removes the file
	}
	_ = e.lock.Close()
}

// keepDir makes the directory beside the database again if someone has removed
// it. It does not make the lock file again, because the guardians would hold no
// lock on the new file. If the worker then died, the lock of the new file would
// be free. Other workers would take over the tasks, while the guardians still
// have commands to kill.
func (e *Engine) keepDir() {
	// If the database file was removed or replaced, this worker does not need
	// the directory beside it.
	if e.store.Replaced() != nil {
		return
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

// checkLock checks that the lock file of this worker is still at its path. If
// someone has removed the file, other workers rely on the leases alone. If
// another file has replaced it, other workers may think that this worker is
// dead, so it claims nothing more.
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

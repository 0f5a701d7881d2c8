package engine

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// A command shares two files with its worker: $RUNNER_RESULT and
// $RUNNER_UPSTREAM. The worker removes them when the attempt ends, and its lock
// file when it ends itself. If the worker is killed, they stay, with the
// results of tasks in them. So a reaper removes those of the tasks that it
// takes over, and a worker that starts removes all that belong to no running
// attempt.

// strayAge is the least age of a lock file that removeStrayFiles removes. A
// younger file without a worker may belong to one that is about to register.
const strayAge = time.Minute

// removeStrayFiles removes the lock files that belong to no live worker, and
// the shared files of attempts that have ended.
func (e *Engine) removeStrayFiles(live map[string]db.Owner) {
	entries, err := os.ReadDir(e.store.Dir())
	if err != nil {
		return
	}

	for _, entry := range entries {
		worker, isLock := strings.CutSuffix(entry.Name(), supervisor.LockSuffix)
		_, isLive := live[worker]
		switch {
		case isLock && !isLive:
			e.removeStrayLock(worker, entry)
		case !isLock && e.isStray(entry.Name()):
			_ = os.Remove(filepath.Join(e.store.Dir(), entry.Name()))
		}
	}
}

// removeStrayLock removes the lock file of a worker that is gone.
func (e *Engine) removeStrayLock(worker string, entry fs.DirEntry) {
	path := supervisor.LockPath(e.store.Dir(), worker)
	info, err := entry.Info()
	if err != nil || now().Sub(info.ModTime()) < strayAge || path == "" {
		return // path is empty for init.lock, which belongs to no worker
	}
	if lock, err := supervisor.TakeLock(path); err == nil {
		_ = lock.Remove() // if this fails, the next worker that starts tries again
		_ = lock.Close()
	}
}

// isStray reports whether a file belonged to an attempt that has ended. The
// claim of an attempt is committed before its files exist, so its caller has
// listed the files first.
func (e *Engine) isStray(file string) bool {
	kind, rest, _ := strings.Cut(file, "-")
	var id, generation int64
	if n, _ := fmt.Sscanf(rest, "%d-%d.json", &id, &generation); n != 2 || kind != "result" && kind != "upstream" {
		return false
	}
	running, err := e.store.List(context.Background(), jobs.Filter{IDs: []int64{id}, States: []jobs.State{jobs.Running}})
	return err == nil && (len(running) == 0 || running[0].GenerationID-generation > 1)
}

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/exec"
)

// A command shares two files with its worker: $RUNNER_RESULT and
// $RUNNER_UPSTREAM. The worker removes them when the attempt ends. If the worker
// is killed, they stay, with the results of tasks in them. So a reaper removes
// those of the tasks that it takes over, and a worker that starts removes all
// that belong to no running attempt.

// sharedFiles are the beginnings of the names; runner/internal/exec makes them.
var sharedFiles = []string{"result", "upstream"}

// removeSharedFiles removes the files of reaped attempts. The generation of a
// task whose claim was revoked is one above that of the claim.
func (e *Engine) removeSharedFiles(worker string, reaped []db.Reaped) {
	for _, r := range reaped {
		for generation := r.Task.GenerationID - 1; generation <= r.Task.GenerationID; generation++ {
			exec.RemoveShared(e.store, worker, r.Task.ID, generation)
		}
	}
}

// removeStrayFiles removes the files of attempts that have ended. An attempt's
// claim is committed before its files exist, so it lists the files first.
func (e *Engine) removeStrayFiles(ctx context.Context) {
	entries, err := os.ReadDir(e.store.Dir())
	if err != nil {
		return
	}
	for _, entry := range entries {
		for _, name := range sharedFiles {
			var id, generation int64
			rest, found := strings.CutPrefix(entry.Name(), name+"-")
			if n, _ := fmt.Sscanf(rest, "%d-%d.json", &id, &generation); !found || n != 2 {
				continue
			}
			running, err := e.store.List(ctx, jobs.Filter{IDs: []int64{id}, States: []jobs.State{jobs.Running}}, db.Page{})
			if err != nil || len(running) == 1 && running[0].GenerationID-generation <= 1 {
				continue
			}
			_ = os.Remove(filepath.Join(e.store.Dir(), entry.Name()))
		}
	}
}

package runner

import (
	"fmt"
	"maps"
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Register sets which jobs this process can run, each under its name. It panics
// if a name is invalid or registered already, or while Work runs, because these
// are programming errors.
func (r *Runner) Register(handlers ...jobs.Handler) {
	defer r.beforeWork("Register")()
	for _, h := range handlers {
		if err := taskspec.ValidJob(h.Job); err != nil || h.Run == nil {
			panic(fmt.Sprintf("runner: register %q: no job name, or no function", h.Job))
		}
		if h.BulkWait < 0 || h.BulkWait > 0 && h.BulkSize == 0 {
			panic(fmt.Sprintf("runner: register %q: BulkWait is %v; use a positive time and a handler of BulkHandler", h.Job, h.BulkWait))
		}
		if _, double := r.handlers[h.Job]; double {
			panic(fmt.Sprintf("runner: job %q is registered twice", h.Job))
		}
		r.handlers[h.Job] = h
	}
}

// jobs returns the names of the registered jobs, sorted.
func (r *Runner) jobs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.handlers))
}

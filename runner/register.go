package runner

import (
	"fmt"
	"maps"
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Register sets which jobs this process can run, each under its name and its aliases. It panics if a name is invalid or registered already,
// or while Work runs, because these are programming errors.
func (r *Runner) Register(handlers ...jobs.Handler) {
	defer r.beforeWork("Register")()
	for _, h := range handlers {
		for _, job := range append([]string{h.Job}, h.Aliases...) {
			if err := taskspec.ValidJob(job); err != nil || h.Run == nil {
				panic(fmt.Sprintf("runner: register %q: no job name, or no function", job))
			}
			if _, double := r.handlers[job]; double {
				panic(fmt.Sprintf("runner: job %q is registered twice", job))
			}
			r.handlers[job] = h
		}
	}
}

// Jobs returns the names and aliases of the registered jobs, sorted.
func (r *Runner) Jobs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.handlers))
}

package runner

import (
	"fmt"
	"slices"

	"example.com/runner/jobs"
)

// Register tells Work which jobs this process can run. Call it before Work. It panics on a name that is no job's, or that is
// registered already, as net/http does: both are mistakes of the program.
func (r *Runner) Register(handlers ...jobs.Handler) {
	for _, h := range handlers {
		if err := jobs.ValidJob(h.Job); err != nil || h.Run == nil {
			panic(fmt.Sprintf("runner: register %q: no job name, or no function", h.Job))
		}
		if _, double := r.handlers[h.Job]; double {
			panic(fmt.Sprintf("runner: job %q is registered twice", h.Job))
		}
		r.handlers[h.Job] = h
	}
}

// Jobs returns the names of the registered jobs, sorted.
func (r *Runner) Jobs() []string {
	names := make([]string, 0, len(r.handlers))
	for name := range r.handlers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

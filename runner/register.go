package runner

import (
	"context"
	"encoding/json"
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

// Middleware is called in place of every execution, of functions and of commands, by the goroutine that executes: it calls next
// once, with ctx or a context made from it, and returns what that returned, or something else. What it returns is the outcome of the
// attempt: an error fails it, jobs.Cancel and its like do what they do elsewhere, a panic is one of the function.
type Middleware func(ctx context.Context, task jobs.Task, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)

// Use puts middleware around every execution, whenever its job is registered: the first one outermost. Call it before Work. It costs
// nothing where there is none.
func (r *Runner) Use(middleware ...Middleware) { r.middleware = append(r.middleware, middleware...) }

// wrapped returns the registered handlers with all middleware around them.
func (r *Runner) wrapped() map[string]jobs.Handler {
	all := make(map[string]jobs.Handler, len(r.handlers))
	for job, h := range r.handlers {
		for _, m := range slices.Backward(r.middleware) {
			inner := h.Run
			h.Run = func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
				return m(ctx, task, func(ctx context.Context) (json.RawMessage, error) { return inner(ctx, task) })
			}
		}
		all[job] = h
	}
	return all
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

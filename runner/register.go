package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Register sets which jobs this process can run. It panics if a job name is invalid or registered already, or while Work runs, because
// these are programming errors.
func (r *Runner) Register(handlers ...jobs.Handler) {
	r.beforeWork("Register")
	for _, h := range handlers {
		if err := taskspec.ValidJob(h.Job); err != nil || h.Run == nil {
			panic(fmt.Sprintf("runner: register %q: no job name, or no function", h.Job))
		}
		if _, double := r.handlers[h.Job]; double {
			panic(fmt.Sprintf("runner: job %q is registered twice", h.Job))
		}
		r.handlers[h.Job] = h
	}
}

// Middleware wraps the execution of functions and commands. The goroutine that executes an attempt calls the middleware in place of the
// function or command. The middleware calls next once, with ctx or a context made from it. The result and error of the middleware are the
// outcome of the attempt. An error fails the attempt, and an error of a function such as jobs.Cancel has its usual meaning. A panic of the
// middleware counts as a panic of the function.
type Middleware func(ctx context.Context, task jobs.Task, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)

// Use adds middleware around every execution, including those of jobs that are registered later. The first middleware is the outermost.
// Use panics if a middleware is nil, or while Work runs.
func (r *Runner) Use(middleware ...Middleware) {
	r.beforeWork("Use")
	for _, m := range middleware {
		if m == nil {
			panic("runner: a middleware is nil")
		}
	}
	r.middleware = append(r.middleware, middleware...)
}

// beforeWork panics while Work runs, because a call of Register or Use would have no effect.
func (r *Runner) beforeWork(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abort != nil {
		panic("runner: " + call + " while Work runs")
	}
}

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

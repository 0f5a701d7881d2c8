package runner

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Middleware wraps the execution of functions and commands. The goroutine that
// executes an attempt calls the middleware in their place. It calls next once,
// with a task and with ctx or a context made from ctx. The wrapped function
// gets the task of this call, so a middleware can decrypt Task.Args.
// TaskFromContext and the worker still use the task in the database.
//
// The result and error of the middleware are the attempt's outcome. An error
// fails the attempt, and one such as jobs.Cancel has its usual meaning. A panic
// of the middleware counts as a panic of the function. Many goroutines call the
// middleware at the same time.
type Middleware func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (
	json.RawMessage, error)

// Use adds middleware around every execution, including those of jobs that are
// registered later. The first middleware is the outermost. Use panics if a
// middleware is nil, or while Work runs.
func (r *Runner) Use(middleware ...Middleware) {
	defer r.beforeWork("Use")()
	for _, m := range middleware {
		if m == nil {
			panic("runner: a middleware is nil")
		}
	}
	r.middleware = append(r.middleware, middleware...)
}

// UseEnqueue adds middleware that runs for each task that this Runner adds, in
// the order of the middleware: in Enqueue, EnqueueMany, EnqueueSeq, EnqueueTx,
// EnqueueManyTx, admin.RunSchedule and at the ticks of schedules in Work. It
// also runs for a task that the call then does not add, because another task
// holds the unique key. UniqueOptions.Args uses the arguments as they were
// before the middleware changed them. The middleware does not run for tasks
// that other processes add, for hooks, and for retries.
//
// The middleware may set fields of spec and change spec.Metadata, which is a
// copy and never nil. It must not change what other fields of spec refer to,
// such as the bytes of Args, but may set these fields to new values. The Spec
// is checked afterwards. If the middleware returns an error, the call that adds
// the task returns this error and adds none of its tasks.
//
// At ticks, and in admin.RunSchedule and EnqueueSeq, the middleware runs while
// the Runner holds the write lock of the database. So it must be quick, and
// must not call methods of the Runner that write. If the middleware returns an
// error at a tick, the tick stays due, and Work tries again after a second.
// Call UseEnqueue before other goroutines use the Runner. UseEnqueue panics if
// a middleware is nil, or while Work runs.
func (r *Runner) UseEnqueue(middleware ...func(ctx context.Context, spec *jobs.Spec) error) {
	defer r.beforeWork("UseEnqueue")()

	for _, m := range middleware {
		if m == nil {
			panic("runner: a middleware is nil")
		}
	}

	// The copy leaves the list alone that a concurrent call of Enqueue reads.
	r.enqueueMiddleware = slices.Concat(r.enqueueMiddleware, middleware)
}

// runEnqueueMiddleware calls the middleware of UseEnqueue, and checks the Spec
// that it has changed.
func (r *Runner) runEnqueueMiddleware(ctx context.Context, spec *jobs.Spec) error {
	r.mu.Lock()
	list := r.enqueueMiddleware
	r.mu.Unlock()
	if len(list) == 0 || spec.Err != nil {
		return nil
	}

	// compute the unique key from the original arguments: middleware that
	// encrypts them may return another text each time
	if spec.Unique.Args {
		taskspec.ResolveKey(spec)
	}
	metadata := make(map[string]string, len(spec.Metadata)+1)
	maps.Copy(metadata, spec.Metadata)
	spec.Metadata = metadata
	for _, m := range list {
		if err := m(ctx, spec); err != nil {
			return err
		}
	}

	if len(spec.Metadata) == 0 {
		spec.Metadata = nil
	}

	return taskspec.Validate(spec)
}

// beforeWork locks the Runner for a change of what Work uses, and returns the
// function that unlocks it. It panics while Work runs, because the change would
// have no effect.
func (r *Runner) beforeWork(call string) (unlock func()) {
	r.mu.Lock()
	if r.abort != nil {
		r.mu.Unlock()
		panic("runner: " + call + " while Work runs")
	}
	return r.mu.Unlock
}

// wrapped returns the registered handlers with all middleware around them.
// Work runs, so nothing changes them.
func (r *Runner) wrapped() map[string]jobs.Handler {
	all := make(map[string]jobs.Handler, len(r.handlers))
	for job, h := range r.handlers {
		for _, m := range slices.Backward(r.middleware) {
			inner := h.Run
			h.Run = func(ctx context.Context, task jobs.Task) (json.RawMessage, error) { return m(ctx, task, inner) }
		}
		all[job] = h
	}

	return all
}

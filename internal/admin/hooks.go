package admin

import (
	"context"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// SetHooks sets the hooks of a queue. A task's own hook has precedence over the hook of its queue. If h is empty, SetHooks removes the
// hooks of the queue. The result reports whether the queue had hooks before.
func SetHooks(ctx context.Context, r *runner.Runner, queue string, h jobs.Hooks) (had bool, err error) {
	return store(r).SetQueueHooks(ctx, queue, h)
}

// Hooks returns the hooks of all queues that have some.
func Hooks(ctx context.Context, r *runner.Runner) (map[string]jobs.Hooks, error) {
	return store(r).QueueHooks(ctx)
}

// ValidHooks returns an error if the commands of hooks are invalid.
func ValidHooks(h jobs.Hooks) error {
	s := jobs.Command{Argv: []string{"true"}}.With(jobs.OnEnd(h))
	return taskspec.Validate(&s)
}

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// Step does a part of a function once. It calls do, and stores the value that do returns, as JSON, before it returns. When the task runs
// again, because a later step failed or its worker was lost, Step returns the stored value and does not call do. Step returns an error of
// do as it is and stores nothing. The function should return that error, and the next attempt does the step again.
//
// name is unique within the task and has at most jobs.MaxText bytes. Every attempt must call its steps and sleeps in the same order. A new
// version of the function may only add steps after those that are done. Steps must not be nested or concurrent. Otherwise the error is
// jobs.ErrStep, and do was not called.
//
// The value passes through JSON in the first attempt, too, so an attempt never sees a part of it that JSON loses. It may have up to
// jobs.MaxResult bytes; otherwise the error is jobs.ErrStep, although do was called. A task may have up to 10,000 steps. The error
// is jobs.ErrLost if the task belongs to a newer generation.
//
// A step runs at least once: if its process dies after do and before the value is stored, the next attempt calls do again. Where that
// matters, do should use an idempotency key, such as the task's id and the step's name. Each step is a commit, which is on the disk when
// Step returns. So a step costs as much as an Enqueue.
//
// `runner show` and Runner.Steps list the steps of a task. Retry keeps the steps of a task that failed, and deletes those of a task that
// completed. Outside of an attempt Step calls do and stores nothing, so that functions can be tested without a Runner.
func Step[T any](ctx context.Context, name string, do func(context.Context) (T, error)) (T, error) {
	var value T
	if !engine.InAttempt(ctx) {
		return do(ctx)
	}
	text, err := engine.Step(ctx, name, func(ctx context.Context) (json.RawMessage, error) {
		value, err := do(ctx)
		if err != nil {
			return nil, err
		}
		text, err := jobs.MarshalResult(value)
		if err != nil {
			return nil, fmt.Errorf("%w: the value of %q: %w", jobs.ErrStep, name, err)
		}
		return text, nil
	})
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// Sleep delays the rest of a function by d. It sleeps once, even if the task has several attempts. It returns an error that the function
// must return. The task then becomes scheduled and takes no slot, and the attempt does not count. Sleep returns nil in the attempt that
// runs after d. The sleep does not end early if someone makes the task due earlier. name and the order are as in Step. d is at most 10
// years. Outside of an attempt Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	return engine.Sleep(ctx, name, d)
}

// Steps returns the steps of a task that have ended, and its sleeps, in their order.
func (r *Runner) Steps(ctx context.Context, id int64) ([]jobs.Step, error) {
	return r.store.Steps(ctx, id)
}

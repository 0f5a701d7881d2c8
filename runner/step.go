package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// Step does a part of a function once: it calls do, and keeps the value that it returns, as JSON, before it returns itself. When the
// task is run again, because a later step failed or its worker was lost, Step returns the value without calling do. An error of do is
// returned as it is, and kept nowhere: the function should return it, and the next attempt does the step again.
//
// name is unique within the task: at most jobs.MaxText bytes. Every attempt must come to its steps and sleeps in the same order; new
// ones may only come behind those that were done. Otherwise the error is jobs.ErrStep, and nothing was done. Steps are not nested and
// not concurrent: one that comes while another is under way is jobs.ErrStep.
//
// T passes through JSON, at first, too: what does not survive that is lost at once. It may take up to jobs.MaxResult bytes (more is
// jobs.ErrStep, when do has been called), and there may be up to jobs.MaxSteps steps in a task. An effect of do is repeated when its process dies after it and before the value is kept:
// at least once, as everywhere; where that matters, do should use a key of its own, such as the task's id and the step's name.
// Each step is a commit of its own, on the disk when Step returns; so it costs what an Enqueue costs. It is
// jobs.ErrLost when the task belongs to a newer generation.
//
// `runner show` lists the steps of a task, as Runner.Steps does. They stay when a task that failed is retried by hand, and are
// forgotten when one that completed is. Outside of an attempt Step calls do and keeps nothing, so that functions can be tested without a Runner.
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

// Sleep puts the rest of a function off for d, once, without a slot in the meantime and across restarts: it returns an error, which the
// function must return, and then the task is scheduled; this attempt does not count. The attempt that finds the sleep over gets nil.
// Someone who makes the task due earlier does not end the sleep. name and order are as those of Step; d is at most jobs.MaxDelay.
// Outside of an attempt it waits for d, or until ctx ends.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	return engine.Sleep(ctx, name, d)
}

// Steps returns the steps of a task that have ended, and its sleeps, in their order.
func (r *Runner) Steps(ctx context.Context, id int64) ([]jobs.Step, error) {
	return r.store.Steps(ctx, id)
}

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/runner/jobs"
)

// A function with steps is called from its start in every attempt. Steps that have ended return what they returned; so it comes to where
// it was, and on from there.

// steps is what an attempt knows of the steps of its task.
type steps struct {
	mu     sync.Mutex
	loaded bool
	known  []jobs.Step // of all attempts, in order
	done   int         // those of them that this attempt has come to
	asleep error       // a sleep has begun: what the function has to return
}

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
	a := attemptFrom(ctx)
	if a == nil {
		return do(ctx)
	}
	text, err := a.step(ctx, name, func(ctx context.Context) (json.RawMessage, error) {
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
	a := attemptFrom(ctx)
	if a == nil {
		return wait(ctx, d)
	}
	if d > jobs.MaxDelay {
		return fmt.Errorf("%w: sleep %q of %v is too long: at most %v", jobs.ErrStep, name, d, jobs.MaxDelay)
	}
	s := a.stepped()
	if !s.mu.TryLock() {
		return amidst(name)
	}
	defer s.mu.Unlock()
	known, err := a.come(ctx, name, true)
	if err != nil {
		return err
	}
	at := now()
	if known == nil {
		step := jobs.Step{Name: name, GenerationID: a.task.GenerationID, At: at, WakeAt: at.Add(max(d, 0)).Truncate(time.Millisecond)}
		if known, err = a.keep(ctx, step); err != nil {
			return err
		}
	}
	if left := known.WakeAt.Sub(at); left > 0 {
		s.asleep = jobs.Snooze(left)
		return s.asleep
	}
	s.done++
	return nil
}

// stepped returns what the attempt knows of steps: nothing at first.
func (a *attempt) stepped() *steps {
	if s := a.steps.Load(); s != nil {
		return s
	}
	a.steps.CompareAndSwap(nil, &steps{}) // another goroutine may have been quicker
	return a.steps.Load()
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func amidst(name string) error {
	return fmt.Errorf("%w: %q comes while another one is under way: they cannot be nested, nor concurrent", jobs.ErrStep, name)
}

// step returns the value of a step, from an earlier attempt or by doing it.
func (a *attempt) step(ctx context.Context, name string, do func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	s := a.stepped()
	if !s.mu.TryLock() {
		return nil, amidst(name)
	}
	defer s.mu.Unlock()
	known, err := a.come(ctx, name, false)
	if err != nil {
		return nil, err
	}
	if known == nil {
		value, err := do(ctx)
		if err != nil {
			return nil, err
		}
		if known, err = a.keep(ctx, jobs.Step{Name: name, GenerationID: a.task.GenerationID, At: now(), Value: value}); err != nil {
			return nil, err
		}
	}
	s.done++
	return known.Value, nil
}

// come returns what is known of the step that the function comes to; nil: it is new.
func (a *attempt) come(ctx context.Context, name string, sleep bool) (*jobs.Step, error) {
	s := a.stepped()
	switch {
	case s.asleep != nil:
		return nil, s.asleep
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !s.loaded:
		known, err := a.e.r.store.Steps(ctx, a.task.ID)
		if err != nil {
			return nil, err
		}
		s.known, s.loaded = known, true
	}
	return jobs.NextStep(s.known, s.done, name, sleep)
}

// keep stores a step that is new. What has been done is stored even if the attempt is being stopped.
func (a *attempt) keep(ctx context.Context, step jobs.Step) (*jobs.Step, error) {
	s := a.stepped()
	if err := a.e.worker.AddStep(context.WithoutCancel(ctx), a.claim, s.done+1, step); err != nil {
		if errors.Is(err, jobs.ErrLost) {
			a.fenced.Store(true)
			a.stop(jobs.ErrLost, true)
		}
		return nil, err
	}
	s.known = append(s.known, step)
	return &s.known[s.done], nil
}

// Steps returns the steps of a task that have ended, and its sleeps, in their order.
func (r *Runner) Steps(ctx context.Context, id int64) ([]jobs.Step, error) {
	return r.store.Steps(ctx, id)
}

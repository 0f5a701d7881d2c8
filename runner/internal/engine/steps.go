package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A function with steps starts from its beginning in every attempt. A completed step does not run again; Step returns its stored value. So
// the function soon reaches the step that is not complete, and continues there.

// steps has the steps of a task that the current attempt has read from the database or stored there.
type steps struct {
	mu     sync.Mutex
	loaded bool
	known  []jobs.Step // steps of all attempts, in order
	done   int         // number of known steps that this attempt has passed
	asleep error       // error that the function has to return after a sleep has begun; nil before that
}

// InAttempt reports whether ctx is the context of an attempt.
func InAttempt(ctx context.Context) bool { return attemptFrom(ctx) != nil }

// Step returns the value of a step of the attempt that runs with ctx. The value comes from an earlier attempt, or else from a call of the
// function do.
func Step(ctx context.Context, name string, do func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	a := attemptFrom(ctx)
	s := a.loadSteps()
	if !s.mu.TryLock() {
		return nil, errConcurrent(name)
	}
	defer s.mu.Unlock()
	known, err := a.nextStep(ctx, name, false)
	if err != nil {
		return nil, err
	}
	if known == nil {
		value, err := do(ctx)
		if err != nil {
			return nil, err
		}
		step := jobs.Step{Name: name, GenerationID: a.task.GenerationID, At: now(), Value: value}
		if known, err = a.storeStep(ctx, step); err != nil {
			return nil, err
		}
	}
	s.done++
	return known.Value, nil
}

// Sleep delays the rest of the function that runs with ctx by d.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	a := attemptFrom(ctx)
	if a == nil {
		return wait(ctx, d)
	}
	if d > taskspec.MaxDelay {
		return fmt.Errorf("%w: sleep %q of %v is too long: at most %v", jobs.ErrStep, name, d, taskspec.MaxDelay)
	}
	s := a.loadSteps()
	if !s.mu.TryLock() {
		return errConcurrent(name)
	}
	defer s.mu.Unlock()
	known, err := a.nextStep(ctx, name, true)
	if err != nil {
		return err
	}
	at := now()
	if known == nil {
		step := jobs.Step{Name: name, GenerationID: a.task.GenerationID, At: at, WakeAt: at.Add(max(d, 0)).Truncate(time.Millisecond)}
		if known, err = a.storeStep(ctx, step); err != nil {
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

// errConcurrent is the error of a step that begins before another one has ended.
func errConcurrent(name string) error {
	return fmt.Errorf("%w: %q began before another step ended: steps cannot be nested or concurrent", jobs.ErrStep, name)
}

// loadSteps returns the steps of the attempt. They are empty until nextStep reads them.
func (a *attempt) loadSteps() *steps {
	if s := a.steps.Load(); s != nil {
		return s
	}
	a.steps.CompareAndSwap(nil, &steps{}) // does nothing if another goroutine has set it meanwhile
	return a.steps.Load()
}

// nextStep returns the stored record of the step that the function has reached. It returns nil if the step is new.
func (a *attempt) nextStep(ctx context.Context, name string, sleep bool) (*jobs.Step, error) {
	s := a.loadSteps()
	switch {
	case s.asleep != nil:
		return nil, s.asleep
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !s.loaded:
		known, err := a.e.store.Steps(ctx, a.task.ID)
		if err != nil {
			return nil, err
		}
		s.known, s.loaded = known, true
	}
	return lifecycle.NextStep(s.known, s.done, name, sleep)
}

// storeStep stores a new step. It does so even if ctx has ended, because the work of the step is done.
func (a *attempt) storeStep(ctx context.Context, step jobs.Step) (*jobs.Step, error) {
	s := a.loadSteps()
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

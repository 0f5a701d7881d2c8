package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A function with steps starts from its beginning in every attempt. A completed
// step does not run again; Step returns its stored value. So the function soon
// reaches the step that is not complete, and continues there. Step finds a
// stored step by its name, not by its position. So an attempt may have other
// steps than the attempt before it, for example after the error of a step.

// steps has the steps and sleeps of a task that the current attempt has read
// from the database or stored there.
type steps struct {
	mu     sync.Mutex
	stored map[string]db.Step // steps in the database, by name; nil until the first step of the attempt reads them
	passed map[string]bool    // names that the current attempt has used
	stale  bool               // whether the next Step must read the steps again, because a transaction may have changed them
	asleep error              // error that the function has to return after a sleep has begun; nil before that
}

// Step returns the value of a step of the handler with the context ctx. The
// value comes from an earlier attempt, or else from a call of do.
//
// With a tx, Step stores the value in that transaction of the program. After an
// error the caller rolls tx back. Nobody tells the engine when tx ends, and
// whether it was committed. So each call with a tx reads the stored steps,
// those of tx itself included, and the next Step or Sleep reads them again. A
// step that was rolled back is then gone, and its name is free.
func Step(ctx context.Context, tx *sql.Tx, name string, do func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	a := attemptFrom(ctx)
	s := &a.steps
	if !s.mu.TryLock() {
		return nil, errConcurrent(name)
	}
	defer s.mu.Unlock()

	step, stored, err := a.storedStep(ctx, tx, name, false)
	if err != nil {
		return nil, err
	}
	if !stored {
		value, err := do(ctx)
		if err != nil {
			return nil, err
		}
		step = db.Step{Name: name, GenerationID: a.task.GenerationID, At: now(), Value: value}
		write, cancel := Outlive(ctx, storeWait)
		defer cancel()

		if err := a.storeStep(write, tx, step); err != nil {
			return nil, err
		}
	}
	if tx == nil {
		s.passed[name] = true
	}

	return step.Value, nil
}

// Sleep delays the rest of the handler with the context ctx by d.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	a := attemptFrom(ctx)
	if a == nil {
		return wait(ctx, d)
	}
	if d > taskspec.MaxDelay {
		return StepError(nil, "sleep %q of %v is too long: at most %v", name, d, taskspec.MaxDelay)
	}

	s := &a.steps
	if !s.mu.TryLock() {
		return errConcurrent(name)
	}
	defer s.mu.Unlock()

	step, stored, err := a.storedStep(ctx, nil, name, true)
	if err != nil {
		return err
	}

	at := now()
	if !stored {
		step = db.Step{Name: name, GenerationID: a.task.GenerationID, At: at, WakeAt: at.Add(max(d, 0)).Truncate(time.Millisecond)}
		if err := a.storeStep(ctx, nil, step); err != nil {
			return err
		}
	}
	if left := step.WakeAt.Sub(at); left > 0 {
		s.asleep = jobs.Snooze(left)
		return s.asleep
	}

	s.passed[name] = true
	return nil
}

// StepError is the error of an invalid step.
func StepError(cause error, format string, args ...any) error {
	return &jobs.Error{Kind: jobs.ErrInvalid, Code: "step", What: "step: " + fmt.Sprintf(format, args...), Err: cause}
}

// errConcurrent is the error of a step that begins before another step has
// ended.
func errConcurrent(name string) error {
	return StepError(nil, "%q began before another step ended: steps cannot be nested or concurrent", name)
}

// storedStep returns the stored record of a step or sleep. It returns false if
// the step is new. A name that the current attempt has used already is an
// error, even if a transaction has stored the step.
func (a *attempt) storedStep(ctx context.Context, tx *sql.Tx, name string, sleep bool) (db.Step, bool, error) {
	s := &a.steps
	switch {
	case s.asleep != nil:
		return db.Step{}, false, s.asleep
	case ctx.Err() != nil:
		return db.Step{}, false, context.Cause(ctx)
	case tx != nil || s.stored == nil || s.stale:
		if err := a.readSteps(ctx, tx); err != nil {
			return db.Step{}, false, err
		}
	}

	step, ok := s.stored[name]
	var err error
	switch {
	case name == "" || len(name) > taskspec.MaxText || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		err = StepError(nil, "invalid name %q; use 1 to %d bytes of UTF-8 without control characters", name, taskspec.MaxText)
	case s.passed[name] || ok && step.GenerationID == a.task.GenerationID:
		err = StepError(nil, "%s %q comes twice: each needs a name of its own", kindOfStep(step.Slept()), name)
	case ok && step.Slept() != sleep:
		err = StepError(nil, "%q is a %s, and was a %s in an earlier attempt: use another name", name, kindOfStep(sleep),
			kindOfStep(step.Slept()))
	case !ok && len(s.stored) >= taskspec.MaxSteps:
		err = StepError(nil, "%q is one too many: at most %d in a task", name, taskspec.MaxSteps)
	}

	return step, ok, err
}

func kindOfStep(sleep bool) string {
	if sleep {
		return "sleep"
	}
	return "step"
}

// readSteps reads the stored steps of the task, in the transaction tx if there
// is one.
func (a *attempt) readSteps(ctx context.Context, tx *sql.Tx) (err error) {
	var stored []db.Step
	if tx == nil {
		stored, err = a.e.store.Steps(ctx, a.task.ID)
	} else {
		stored, err = a.e.store.StepsTx(ctx, tx, a.task.ID)
	}
	if err != nil {
		return err
	}

	s := &a.steps
	if s.stale = tx != nil; s.passed == nil {
		s.passed = map[string]bool{}
	}

	s.stored = make(map[string]db.Step, len(stored))
	for _, step := range stored {
		s.stored[step.Name] = step
	}

	return nil
}

// storeWait is how long Step may still try to store a step after its context
// has ended. Step does not give up at once, because the work of the step is
// already done.
const storeWait = time.Second

// storeStep stores a new step.
func (a *attempt) storeStep(ctx context.Context, tx *sql.Tx, step db.Step) error {
	s := &a.steps
	if err := a.e.worker.AddStep(ctx, tx, a.claim, len(s.stored)+1, step); err != nil {
		a.stopIfLost(err)
		return err
	}
	s.stored[step.Name] = step
	return nil
}

// stopIfLost stops the attempt if err says that the task has a newer
// generation.
func (a *attempt) stopIfLost(err error) {
	if errors.Is(err, jobs.ErrLost) {
		a.lose()
	}
}

package runner

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/runner/internal/engine"
)

// Step runs a part of a function once, even if the task has several attempts.
// Step calls do, which is this part, and stores its value as JSON before it
// returns that value. If a later step fails or the worker dies, the next
// attempt runs the function again. In that attempt Step returns the stored
// value and does not call the part. If the part returns an error, Step returns
// the same error and stores nothing. The function may return that error, or
// handle it and continue. The next attempt calls the part again.
//
// The name must be unique within the task and has at most 200 bytes. A stored
// step is found by its name. So a new version of the function may add, remove
// and reorder steps. A renamed step is a new step and runs again. Steps must
// not be nested or concurrent, and a sleep must not have the name of an earlier
// step. If a step breaks one of these rules, the error is jobs.ErrInvalid with
// the Code "step", and Step does not call the part.
//
// Step encodes and decodes the value in the first attempt, too, so all attempts
// see the same value even if JSON does not keep all of the value. The JSON may
// have up to 1 MiB. If it is longer, the error is jobs.ErrInvalid, although the
// part was called. A task may have up to 10,000 steps. The error is
// jobs.ErrLost if the attempt does not own the task any more.
//
// A step runs at least once: if the process dies after the part and before the
// value is stored, the next attempt calls the part again. If a repetition does
// harm, the part should use an idempotency key, such as the task's id and the
// step's name. Each step is a commit, which is on the disk when Step returns.
// So a step takes as long as an Enqueue. If the effect is in the same database,
// StepTx commits the effect and the step together.
//
// If ctx ends before Step begins, Step does not call the part and returns the
// cause of ctx. If ctx ends while the part runs or while Step waits for the
// lock of the database, Step has 1 s more to store the value. After that time
// the error is the cause of ctx, and the next attempt calls the part again.
//
// `runner show` and admin.Steps list the steps of a task. Retry keeps the
// steps of a task that failed, and deletes those of a task that completed.
// Outside of an attempt Step calls the part and stores nothing, so that
// functions can be tested without a Runner.
func Step[T any](ctx context.Context, name string, do func(context.Context) (T, error)) (T, error) {
	return step(ctx, nil, name, do)
}

// StepTx is Step for a part of a function whose effect is in the database
// itself: it stores the value of the step in a transaction of the caller. do,
// which is this part, must write with tx. So its effect and the record of the
// step are committed together or not at all, and the effect happens exactly
// once. Runner.EnqueueTx documents the requirements of tx.
//
// The caller commits tx after StepTx. If an earlier attempt has committed the
// step, StepTx returns the stored value, does not call the part, and does not
// change tx. If tx is rolled back, nothing is stored, and the function can
// begin another transaction and call StepTx with the same name again. Commit or
// roll back tx before the next Step or Sleep, because these calls wait for the
// lock that tx holds. A transaction can have several steps.
//
// StepTx rolls tx back before it returns an error, so that a later commit of tx
// fails, too. StepTx returns the error of the part. Other errors are
// jobs.ErrInvalid as for Step and for a nil tx or a transaction of another
// file, jobs.ErrLost if the attempt does not own the task any more,
// jobs.ErrBusy, or an error of the driver. Outside of an attempt StepTx calls
// the part, stores nothing, and leaves tx as it is.
func StepTx[T any](ctx context.Context, tx *sql.Tx, name string, do func(context.Context) (T, error)) (value T, err error) {
	_, _, inAttempt := engine.Current(ctx)
	if inAttempt && tx == nil {
		return value, invalidValue("begin it with the handle of the application", "the transaction of step %q is nil", name)
	}
	value, err = step(ctx, tx, name, do)
	if err != nil && inAttempt {
		_ = tx.Rollback() // tx may have ended already
	}
	return value, err
}

// step does what Step does, in the transaction tx if there is one.
func step[T any](ctx context.Context, tx *sql.Tx, name string, do func(context.Context) (T, error)) (value T, err error) {
	if do == nil {
		return value, engine.StepError(nil, "the function of %q is nil", name)
	}
	if _, _, inAttempt := engine.Current(ctx); !inAttempt {
		return do(ctx)
	}

	text, err := engine.Step(ctx, tx, name, func(ctx context.Context) (json.RawMessage, error) {
		value, err := do(ctx)
		if err != nil {
			return nil, err
		}
		text, err := usercode.MarshalResult(value)
		if err != nil {
			return nil, engine.StepError(err, "the value of %q: %v", name, err)
		}
		return text, nil
	})
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return *new(T), err
	}

	return value, nil
}

// Sleep delays the rest of a function by d. It sleeps once, even if the task
// has several attempts. Sleep returns an error that the function must return.
// The task then becomes scheduled and takes no slot, and the attempt does not
// count. In the attempt that runs after the sleep, Sleep returns nil. The sleep
// does not end early if someone makes the task due earlier. The rules for the
// name are those of Step. The duration d is at most 10 years. The error is
// jobs.ErrInvalid for an invalid name or duration, jobs.ErrLost if the attempt
// does not own the task any more, and the cause of ctx if ctx ends before the
// sleep is stored. Outside of an attempt Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	return engine.Sleep(ctx, name, d)
}

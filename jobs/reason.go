package jobs

import (
	"errors"
	"fmt"
	"time"
)

// Reason is the reason why an attempt or a task did not complete. It is empty
// if nothing went wrong.
type Reason string

// An attempt, a failed task or a retrying task has one of the reasons from
// ReasonExit to ReasonShutdown. A pending task has ReasonLost if its worker
// died or lost its lease, and ReasonShutdown if its worker shut down and gave
// it back. A cancelled task has ReasonCancelled, ReasonExpired or
// ReasonDependency.
const (
	ReasonExit       Reason = "exit"       // the command exited with a status other than 0
	ReasonSignal     Reason = "signal"     // the command was killed by a signal
	ReasonTimeout    Reason = "timeout"    // the attempt ran for longer than its timeout
	ReasonError      Reason = "error"      // the function returned an error or an invalid result
	ReasonArgs       Reason = "args"       // the arguments can't be decoded, so the function was not called
	ReasonPanic      Reason = "panic"      // the function panicked
	ReasonStart      Reason = "start"      // the command could not be started
	ReasonMemory     Reason = "memory"     // the command was killed because it used more memory than its limit
	ReasonLost       Reason = "lost"       // the worker died or lost its lease
	ReasonShutdown   Reason = "shutdown"   // the worker shut down before the attempt had ended
	ReasonCancelled  Reason = "cancelled"  // a person or the function itself cancelled the task
	ReasonExpired    Reason = "expired"    // the task had not started before it expired
	ReasonDependency Reason = "dependency" // a task that this task depends on did not complete
)

type (
	wrapped struct{ err error }

	retryError struct {
		wrapped
		in time.Duration
	}
	snoozeError struct{ in time.Duration }
	argsError   struct{ wrapped }
	cancelError struct{ wrapped }
	failError   struct{ wrapped }
)

func (e wrapped) Error() string      { return e.err.Error() }
func (e wrapped) Unwrap() error      { return e.err }
func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.in) }

// By these methods, taskspec.OutcomeOf recognises the errors of RetryIn,
// Snooze, Cancel, Fail and Func.Args.
func (e *retryError) RetryIn() time.Duration    { return e.in }
func (e *snoozeError) SnoozeFor() time.Duration { return e.in }
func (e *argsError) HasBadArgs()                {}
func (e *cancelError) CancelsTask()             {}
func (e *failError) FailsTask()                 {}

// RetryIn wraps an error that a function returns. The next attempt then starts
// after d instead of after the backoff. With a d of 0 the task keeps its place
// in the queue: it is due again before the worker takes a later task. The
// attempt counts as usual, so the task fails if no attempts are left. A
// negative d is 0. A task that comes back at once again and again gets a pause,
// as with Snooze.
func RetryIn(d time.Duration, err error) error {
	return &retryError{wrap(err, "retry"), max(d, 0)}
}

// Snooze returns an error with which a function delays its task. The task
// starts again after d, and the attempt does not count. With a d of 0 the task
// keeps its place in the queue, as with RetryIn. A negative d is an error of
// the attempt. If attempt and d together take less than 100 ms more than ten
// times in a row, the task waits 100 ms from then on, and the worker logs a
// warning.
//
// To give a reason, wrap the error. The task shows the text of that error until
// the next attempt. Middleware recognises the error by its method
// SnoozeFor() time.Duration, with errors.AsType or errors.As.
func Snooze(d time.Duration) error { return &snoozeError{d} }

// Fail wraps an error that a function returns. The task then fails with this
// error, even if attempts are left. Fail is for an error that another attempt
// cannot fix, such as an invalid address. A person can still retry the task.
func Fail(err error) error { return &failError{wrap(err, "failed by its function")} }

// Cancel wraps an error that a function returns. The task is then cancelled
// with this error, even if attempts are left. Cancel is for a task that is not
// needed any more.
func Cancel(err error) error { return &cancelError{wrap(err, "by its function")} }

// wrap wraps an error. The text stands for a missing one.
func wrap(err error, instead string) wrapped {
	if err == nil {
		err = errors.New(instead)
	}
	return wrapped{err}
}

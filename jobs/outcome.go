package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Reason is why an attempt or a task did not complete. It is empty if nothing went wrong.
type Reason string

// The reasons. Attempts, failed tasks and retrying tasks have all but the last three. Pending tasks that a worker lost or released have
// ReasonLost or ReasonShutdown. Cancelled tasks have the last three.
const (
	ReasonExit       Reason = "exit"       // the command exited with a status other than 0
	ReasonSignal     Reason = "signal"     // the command was killed by a signal
	ReasonTimeout    Reason = "timeout"    // the attempt ran for longer than its timeout
	ReasonError      Reason = "error"      // the function returned an error or an invalid result
	ReasonPanic      Reason = "panic"      // the function panicked
	ReasonStart      Reason = "start"      // the command could not be started
	ReasonLost       Reason = "lost"       // the worker died or lost its lease
	ReasonShutdown   Reason = "shutdown"   // the worker shut down before the attempt had ended
	ReasonCancelled  Reason = "cancelled"  // a person or the function itself cancelled the task
	ReasonExpired    Reason = "expired"    // the task had not started before it expired
	ReasonDependency Reason = "dependency" // a task that this task waited for did not complete
)

// Outcome is the outcome of one attempt. The zero Outcome is a success without a result.
type Outcome struct {
	Reason   Reason          // empty for a success
	Error    string          // error message, at most MaxError bytes
	Result   json.RawMessage // result of the attempt; may be set together with Error
	ExitCode *int            // exit status of a command; nil if it was killed by a signal
	Signal   int             // signal that killed the command; 0 if none did

	// Started and Finished are wall clock times. Duration is measured with the monotonic clock.
	Started, Finished time.Time
	Duration          time.Duration

	OutputBytes     int64 // bytes that the attempt printed, stored or not
	OutputTruncated bool  // whether some of the output was not stored

	retryIn *time.Duration // from RetryIn: the delay to use instead of the backoff
	snooze  *time.Duration // from Snooze: the delay before the task starts again
}

// AttemptError is an error with a reason. The handler of commands returns it. Any other error has the reason ReasonError.
type AttemptError struct {
	Reason   Reason
	ExitCode *int // exit status of a command; nil if it was killed by a signal
	Signal   int  // signal that killed the command; 0 if none did
	Msg      string
}

func (e *AttemptError) Error() string { return e.Msg }

type (
	retryError struct {
		in  time.Duration
		err error
	}
	snoozeError struct{ in time.Duration }
	cancelError struct{ err error }
)

func (e *retryError) Error() string  { return e.err.Error() }
func (e *retryError) Unwrap() error  { return e.err }
func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.in) }
func (e *cancelError) Error() string { return e.err.Error() }
func (e *cancelError) Unwrap() error { return e.err }

// RetryIn wraps an error that a function returns: the next attempt starts after d, whatever the backoff is. The attempt counts as usual, so
// the last attempt fails the task.
func RetryIn(d time.Duration, err error) error {
	return &retryError{max(d, 0), cmpError(err, "retry")}
}

// Snooze returns an error with which a function delays its task: the task starts again after d, and the attempt does not count. To
// give a reason, wrap the error: the task shows the text as its error until the next attempt.
func Snooze(d time.Duration) error { return &snoozeError{max(d, 0)} }

// Cancel wraps an error that a function returns: the task is cancelled with this error, even if attempts are left.
func Cancel(err error) error { return &cancelError{cmpError(err, "by its function")} }

func cmpError(err error, instead string) error {
	if err == nil {
		return errors.New(instead)
	}
	return err
}

// OutcomeOf converts what a handler returned into an Outcome. It recognises errors of RetryIn, Snooze, Cancel and AttemptError, also
// when they are wrapped. An invalid result is dropped, and turns a success into an error.
func OutcomeOf(result json.RawMessage, err error) Outcome {
	if result != nil {
		if bad := ValidResult(result); bad != nil {
			result, err = nil, cmp.Or(err, bad)
		}
	}
	o := Outcome{Result: result}
	if err == nil {
		return o
	}
	o.Reason, o.Error = ReasonError, CutError(err.Error())
	var (
		attempt *AttemptError
		retry   *retryError
		snooze  *snoozeError
		cancel  *cancelError
	)
	if errors.As(err, &attempt) {
		o.Reason, o.ExitCode, o.Signal = cmp.Or(attempt.Reason, ReasonError), attempt.ExitCode, attempt.Signal
	}
	switch {
	case errors.As(err, &snooze):
		o.Reason, o.snooze = "", &snooze.in
		if err == error(snooze) { //nolint:errorlint // if it is wrapped, the text says why
			o.Error = ""
		}
	case errors.As(err, &cancel):
		o.Reason = ReasonCancelled
	case errors.As(err, &retry):
		o.retryIn = &retry.in
	}
	return o
}

// CutError makes text fit to be kept as an error: valid UTF-8 of at most MaxError bytes, its end cut off if it must be.
func CutError(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\ufffd"), "\ufffd")
	if len(text) <= MaxError {
		return text
	}
	const mark = "…"
	cut := MaxError - len(mark)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

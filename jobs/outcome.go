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

// Reason says why an attempt or a task ended otherwise than well. It is empty while nothing went wrong.
type Reason string

// The reasons of attempts. All but the last three stand on attempts, failed and retrying tasks; ReasonLost and
// ReasonShutdown also on pending tasks that were given back; the last three on cancelled tasks.
const (
	ReasonExit       Reason = "exit"       // the command ended with another status than 0
	ReasonSignal     Reason = "signal"     // the command died from a signal
	ReasonTimeout    Reason = "timeout"    // the attempt ran for longer than its timeout
	ReasonError      Reason = "error"      // the function returned an error, or a result could not be used
	ReasonPanic      Reason = "panic"      // the function panicked
	ReasonStart      Reason = "start"      // the command could not be started
	ReasonLost       Reason = "lost"       // the worker died, hung, or lost its lease
	ReasonShutdown   Reason = "shutdown"   // the worker stopped before the attempt had ended
	ReasonCancelled  Reason = "cancelled"  // someone cancelled the task, or its function did
	ReasonExpired    Reason = "expired"    // it had not started by its expiry
	ReasonDependency Reason = "dependency" // a task that it waited for did not complete
)

// Outcome is what happened in one attempt. The zero Outcome is a success without a result.
type Outcome struct {
	Reason   Reason          // empty: it went well
	Error    string          // what went wrong, at most MaxError bytes
	Result   json.RawMessage // what the attempt returned, if anything; kept beside an error too
	ExitCode *int            // of a command that ended by itself
	Signal   int             // that killed the command; 0: none

	// Started and Finished are wall times; Duration was measured on the monotonic clock.
	Started, Finished time.Time
	Duration          time.Duration

	OutputBytes     int64 // what the attempt printed, kept or not
	OutputTruncated bool  // whether some of it was not kept

	retryIn *time.Duration // RetryIn: use this delay instead of the backoff
	snooze  *time.Duration // Snooze: start again then, and count nothing
}

// AttemptError is an error that carries the reason of an attempt's end; handlers of commands return it.
// Any other error has the reason ReasonError.
type AttemptError struct {
	Reason   Reason
	ExitCode *int // of a command that ended by itself
	Signal   int  // that killed the command; 0: none
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

// RetryIn makes a function's error one whose next attempt starts after d, whatever the backoff says.
// The attempt counts as any other: the last one fails the task.
func RetryIn(d time.Duration, err error) error {
	return &retryError{max(d, 0), cmpError(err, "retry")}
}

// Snooze makes a function's return one that is neither success nor failure: the task starts again after d, and the
// attempt is not counted. Wrap the error to say why: the task keeps that text as its error until the next attempt.
func Snooze(d time.Duration) error { return &snoozeError{max(d, 0)} }

// Cancel makes a function's error final: the task is cancelled, with err as its error, whatever attempts are left.
func Cancel(err error) error { return &cancelError{cmpError(err, "cancelled by its function")} }

func cmpError(err error, instead string) error {
	if err == nil {
		return errors.New(instead)
	}
	return err
}

// OutcomeOf reads what a handler returned. It knows the errors made by RetryIn, Snooze, Cancel and AttemptError, however
// they are wrapped. A result that cannot be kept is dropped, and makes a success an error.
func OutcomeOf(result json.RawMessage, err error) Outcome {
	if result != nil {
		if bad := ValidResult(result); bad != nil {
			result, err = nil, cmpErr(err, bad)
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
		if err == error(snooze) { // else it is wrapped, and the text says why
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

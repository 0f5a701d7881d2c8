package taskspec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// Outcome says how an attempt ended. The zero Outcome is a success without a result.
type Outcome struct {
	Reason    jobs.Reason     // empty for a success
	Error     string          // error message, at most MaxError bytes
	ErrorLine string          // last line that the failed command printed, at most 200 bytes
	Result    json.RawMessage // result of the attempt; may be set together with Error
	ExitCode  *int            // exit status of a command; nil if there is none, for example because a signal killed the command
	Signal    int             // signal that killed the command; 0 if none did

	// Started and Finished are wall clock times. Duration is measured with the monotonic clock.
	Started, Finished time.Time
	Duration          time.Duration

	OutputBytes     int64 // number of bytes that the attempt printed, including those that were not stored
	OutputTruncated bool  // whether some of the output was not stored
	Usage           jobs.Usage
	ChildrenKilled  int // number of processes that the command left behind and that the worker killed
	ChildrenLeft    int // number of processes that the command left behind and that still run

	retryIn *time.Duration // delay from jobs.RetryIn, which replaces the backoff; nil without RetryIn
	fails   bool           // whether the function returned jobs.Fail, so that there is no further attempt
	snooze  *time.Duration // delay from jobs.Snooze until the next start; nil without Snooze
}

// Failing reports whether the reason means that the attempt itself failed. It returns false for a success, and for an attempt that was
// cancelled, shut down or lost.
func Failing(reason jobs.Reason) bool {
	return reason != "" && reason != jobs.ReasonCancelled && reason != jobs.ReasonShutdown && reason != jobs.ReasonLost
}

// OutcomeOf converts what a handler has returned to an Outcome. It finds the errors of RetryIn, Snooze, Fail, Cancel and AttemptError even
// if other errors wrap them. It drops an invalid result; an attempt with such a result is not a success.
func OutcomeOf(result json.RawMessage, err error) Outcome {
	if result != nil {
		if bad := usercode.ValidResult(result); bad != nil {
			result, err = nil, cmp.Or(err, bad)
		}
	}
	o := Outcome{Result: result}
	if err == nil {
		return o
	}
	if p := usercode.Error("the handler", err, func() { o.setError(err) }); p != nil {
		o = Outcome{Result: result, Reason: jobs.ReasonPanic, Error: CutError(p.Error())}
	}
	return o
}

// setError sets what follows from the error of a handler. The methods of err
// may panic.
func (o *Outcome) setError(err error) {
	o.Reason, o.Error = jobs.ReasonError, CutError(err.Error())
	if attempt, ok := errors.AsType[*jobs.AttemptError](err); ok {
		o.ExitCode, o.Signal = attempt.ExitCode, attempt.Signal
		if ofAttempt(attempt.Reason) {
			o.Reason = attempt.Reason
		}
	}
	// the errors that jobs.Snooze, jobs.Cancel, jobs.Fail and jobs.RetryIn return
	var snooze interface{ SnoozeFor() time.Duration }
	var cancel interface{ CancelsTask() }
	var fail interface{ FailsTask() }
	var retry interface{ RetryIn() time.Duration }
	switch {
	case errors.As(err, &snooze):
		d := snooze.SnoozeFor()
		if d < 0 { // such as that of time.Until with a time that has passed: a retry has a backoff and an end, a snooze has neither
			o.Reason, o.Error = jobs.ReasonError, CutError(fmt.Sprintf("snoozed for the negative time %v", d))
			return
		}
		o.Reason, o.snooze = "", new(d)
		if any(err) == any(snooze) { // only an error that wraps snooze has a text that says why
			o.Error = ""
		}
	case errors.As(err, &cancel):
		o.Reason = jobs.ReasonCancelled
	case errors.As(err, &fail):
		o.fails = true
	case errors.As(err, &retry):
		o.retryIn = new(retry.RetryIn())
	}
}

// Snoozed returns the delay of jobs.Snooze, and whether the attempt ended with
// it.
func (o *Outcome) Snoozed() (time.Duration, bool) {
	if o.snooze == nil || o.Reason != "" {
		return 0, false
	}
	return *o.snooze, true
}

// SetSnooze sets the delay of an outcome that is Snoozed.
func (o *Outcome) SetSnooze(d time.Duration) { o.snooze = new(d) }

// ofAttempt reports whether an AttemptError may have a reason. The others are
// for the worker to find, and one that nobody knows would be stored as it is.
func ofAttempt(reason jobs.Reason) bool {
	switch reason {
	case jobs.ReasonExit, jobs.ReasonSignal, jobs.ReasonTimeout, jobs.ReasonError, jobs.ReasonPanic, jobs.ReasonStart, jobs.ReasonMemory:
		return true
	}
	return false
}

// CutError converts a text to the form in which the database stores errors: valid UTF-8 of at most MaxError bytes. If the text is longer,
// CutError cuts off its end.
func CutError(text string) string {
	return humanize.Cut(plainText(text), MaxError)
}

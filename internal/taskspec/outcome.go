package taskspec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Outcome says how an attempt ended. The zero Outcome is a success without a
// result.
type Outcome struct {
	Reason    jobs.Reason     // empty for a success
	Error     string          // error message, at most MaxError bytes
	ErrorLine string          // last line that the failed command printed, at most 200 bytes
	Result    json.RawMessage // may be set together with Error
	ExitCode  *int            // of a command; nil if a signal killed it, for example
	Signal    int             // signal that killed the command; 0 if none did

	Started  time.Time // by the wall clock, like Finished
	Finished time.Time
	Duration time.Duration // by the monotonic clock

	OutputBytes     int64 // bytes that the attempt printed, stored or not
	OutputTruncated bool  // whether some of the output was not stored
	Usage           command.Usage
	ChildrenKilled  int // processes that the command left behind and the worker killed
	ChildrenLeft    int // processes that the command left behind and that still run

	retryIn *time.Duration // delay of jobs.RetryIn, in place of the backoff
	fails   bool           // whether the function returned jobs.Fail: no further attempt
	snooze  *time.Duration // delay of jobs.Snooze until the next start
}

// Failing reports whether the attempt itself failed. It returns false for a
// success, and for an attempt that was cancelled, shut down or lost.
func Failing(reason jobs.Reason) bool {
	return reason != "" && reason != jobs.ReasonCancelled && reason != jobs.ReasonShutdown && reason != jobs.ReasonLost
}

// AttemptError is an error with a reason. The handler of commands returns it.
// Any other error has the reason ReasonError.
type AttemptError struct {
	Reason   jobs.Reason
	ExitCode *int // exit status of a command; nil if it was killed by a signal
	Signal   int  // signal that killed the command; 0 if none did
	Msg      string
}

func (e *AttemptError) Error() string { return e.Msg }

// OutcomeOf returns the Outcome of what a handler has returned. Other errors
// may wrap those of RetryIn, Snooze, Fail, Cancel and AttemptError. An attempt
// with an invalid result, which is dropped, is not a success.
func OutcomeOf(result json.RawMessage, err error) Outcome {
	if result != nil {
		if bad := usercode.ValidResult(result); bad != nil {
			result, err = nil, cmp.Or(err, bad)
		}
	}

	if err == nil {
		return Outcome{Result: result}
	}

	o := Outcome{Result: result}
	if p := usercode.Error("the handler", err, func() { o.setError(err) }); p != nil {
		o = Outcome{Result: result, Reason: jobs.ReasonPanic, Error: CutError(p.Error())}
	}

	return o
}

// setError sets what follows from the error of a handler. The methods of err
// may panic.
func (o *Outcome) setError(err error) {
	o.Reason, o.Error = jobs.ReasonError, CutError(err.Error())
	if attempt, ok := errors.AsType[*AttemptError](err); ok {
		o.ExitCode, o.Signal = attempt.ExitCode, attempt.Signal
		if slices.Contains(attemptReasons, attempt.Reason) {
			o.Reason = attempt.Reason
		}
	}

	var args interface{ HasBadArgs() }
	if errors.As(err, &args) {
		o.Reason = jobs.ReasonArgs
	}

	// the errors that jobs.Snooze, jobs.Cancel, jobs.Fail and jobs.RetryIn
	// return
	var snooze interface{ SnoozeFor() time.Duration }
	var cancel interface{ CancelsTask() }
	var fail interface{ FailsTask() }
	var retry interface{ RetryIn() time.Duration }
	switch {
	case errors.As(err, &snooze):
		d := snooze.SnoozeFor()
		if d < 0 { // of time.Until with a time that has passed: a retry has a backoff and an end, a snooze has neither
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

// Delay returns the delay of jobs.Snooze or jobs.RetryIn if the attempt ended
// with it.
func (o *Outcome) Delay() (time.Duration, bool) {
	switch {
	case o.snooze != nil && o.Reason == "":
		return *o.snooze, true
	case o.retryIn != nil && Failing(o.Reason):
		return *o.retryIn, true
	}
	return 0, false
}

// SetDelay sets the delay of an outcome that has one.
func (o *Outcome) SetDelay(d time.Duration) {
	if o.snooze != nil {
		o.snooze = new(d)
	} else {
		o.retryIn = new(d)
	}
}

// attemptReasons are the reasons that an AttemptError may have. The others are
// for the worker to find, and one that nobody knows would be stored as it is.
var attemptReasons = []jobs.Reason{jobs.ReasonExit, jobs.ReasonSignal, jobs.ReasonTimeout, jobs.ReasonError,
	jobs.ReasonArgs, jobs.ReasonPanic, jobs.ReasonStart, jobs.ReasonMemory}

// CutError returns a text as the database stores errors: valid UTF-8, cut to
// MaxError bytes.
func CutError(text string) string {
	return humanize.Cut(plainText(text), MaxError)
}

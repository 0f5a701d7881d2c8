package lifecycle

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/taskjson"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Outcome is the outcome of one attempt. The zero Outcome is a success without a result.
type Outcome struct {
	Reason    jobs.Reason     // empty for a success
	Error     string          // error message, at most MaxError bytes
	ErrorLine string          // last line that the failed command printed, at most 200 bytes
	Result    json.RawMessage // result of the attempt; may be set together with Error
	ExitCode  *int            // exit status of a command; nil if it was killed by a signal
	Signal    int             // signal that killed the command; 0 if none did

	// Started and Finished are wall clock times. Duration is measured with the monotonic clock.
	Started, Finished time.Time
	Duration          time.Duration

	OutputBytes     int64 // bytes that the attempt printed, stored or not
	OutputTruncated bool  // whether some of the output was not stored
	Usage           jobs.Usage
	ChildrenKilled  int // processes that the command had left behind and that were killed when it exited
	ChildrenLeft    int // processes that the command left behind and that live on

	retryIn *time.Duration // delay of jobs.RetryIn, which replaces the backoff; nil if there is none
	fails   bool           // whether the error is one of jobs.Fail, so that the task has no further attempt
	snooze  *time.Duration // delay of jobs.Snooze, before the task starts again; nil if there is none
}

// Failing reports whether an attempt that ended with a reason has failed by itself. It was not cancelled, shut down or lost.
func Failing(reason jobs.Reason) bool {
	return reason != "" && reason != jobs.ReasonCancelled && reason != jobs.ReasonShutdown && reason != jobs.ReasonLost
}

// The errors of jobs.RetryIn, jobs.Snooze, jobs.Fail and jobs.Cancel.
type (
	retryError interface {
		error
		RetryIn() time.Duration
	}
	snoozeError interface {
		error
		SnoozeFor() time.Duration
	}
	cancelError interface {
		error
		CancelsTask()
	}
	failError interface {
		error
		FailsTask()
	}
)

// OutcomeOf converts the result and the error of a handler into an Outcome. It recognises errors of RetryIn, Snooze, Fail, Cancel
// and AttemptError, even when they are wrapped. It drops an invalid result, and turns a success with such a result into an error.
func OutcomeOf(result json.RawMessage, err error) Outcome {
	if result != nil {
		if bad := taskjson.ValidResult(result); bad != nil {
			result, err = nil, cmp.Or(err, bad)
		}
	}
	o := Outcome{Result: result}
	if err == nil {
		return o
	}
	o.Reason, o.Error = jobs.ReasonError, CutError(err.Error())
	if attempt, ok := errors.AsType[*jobs.AttemptError](err); ok {
		o.Reason, o.ExitCode, o.Signal = cmp.Or(attempt.Reason, jobs.ReasonError), attempt.ExitCode, attempt.Signal
	}
	if e, ok := errors.AsType[snoozeError](err); ok {
		o.Reason, o.snooze = "", new(e.SnoozeFor())
		if err == error(e) { //nolint:errorlint // if it is wrapped, the text says why
			o.Error = ""
		}
	} else if _, ok := errors.AsType[cancelError](err); ok {
		o.Reason = jobs.ReasonCancelled
	} else if _, ok := errors.AsType[failError](err); ok {
		o.fails = true
	} else if e, ok := errors.AsType[retryError](err); ok {
		o.retryIn = new(e.RetryIn())
	}
	return o
}

// CutError converts a text to the form in which errors are stored: valid UTF-8 of at most MaxError bytes. It cuts off the end of a longer
// text.
func CutError(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\ufffd"), "\ufffd")
	if len(text) <= taskspec.MaxError {
		return text
	}
	const mark = "…"
	cut := taskspec.MaxError - len(mark)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

package db

import (
	"encoding/json"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// outcome is the stored form of an attempt's outcome: a JSON object, or NULL if
// all is empty.
type outcome struct {
	Reason    jobs.Reason `json:"reason,omitempty"`
	Error     string      `json:"error,omitempty"`
	ErrorLine string      `json:"error_line,omitempty"` // last line that the failed command printed
	ExitCode  *int        `json:"exit_code,omitempty"`
	Signal    int         `json:"signal,omitempty"`
	Duration  *int64      `json:"duration,omitempty"` // ms; if missing, the duration is the time from the start of the attempt to its end
	Output    int64       `json:"output_bytes,omitempty"`
	Truncated bool        `json:"output_truncated,omitempty"`
	Killed    int         `json:"children_killed,omitempty"`
	Left      int         `json:"children_left,omitempty"`
	Usage     *[5]int64   `json:"usage,omitempty"` // user and system time in ms, largest RSS, bytes read and written
}

// durationSlack is the difference in milliseconds between a duration and the
// time from start to end that comes from rounding. A larger one means that
// somebody set the clock during the attempt, and the duration is stored.
const durationSlack = 1

// encodeOutcome returns the stored form of an outcome with another reason and
// error: a cancelled task has another reason than its last attempt. ended says
// that the same row has the time of the end, so that a duration which follows
// from it can be left out.
func encodeOutcome(o taskspec.Outcome, reason jobs.Reason, text string, ended bool) any {
	ms := o.Duration.Milliseconds()
	between := o.Finished.UnixMilli() - o.Started.UnixMilli() - ms
	stored := outcome{Reason: reason, Error: text, ErrorLine: o.ErrorLine, ExitCode: o.ExitCode, Signal: o.Signal, Output: o.OutputBytes,
		Truncated: o.OutputTruncated, Killed: o.ChildrenKilled, Left: o.ChildrenLeft}
	if !ended || between < -durationSlack || between > durationSlack {
		stored.Duration = &ms
	}
	if u := o.Usage; u != (commands.Usage{}) {
		stored.Usage = &[5]int64{u.User.Round(time.Millisecond).Milliseconds(), u.System.Round(time.Millisecond).Milliseconds(), u.MaxRSS,
			u.Read, u.Written}
	}
	if stored == (outcome{}) {
		return nil
	}

	return jsonText(stored)
}

// outcome decodes the stored outcome of an attempt that lasted from start to
// end. Invalid JSON, which only plain SQL can write, is an empty outcome.
func (t text) outcome(start, end number) outcome {
	var o outcome
	if t != "" && json.Unmarshal([]byte(t), &o) != nil {
		o = outcome{}
	}
	if o.Duration == nil && start != 0 && end != 0 {
		o.Duration = new(int64(max(end-start, 0)))
	}
	return o
}

// fill sets the fields of a task that describe its last attempt.
func (o outcome) fill(t *jobs.Task) {
	t.Reason, t.Error, t.ExitCode, t.Signal, t.OutputBytes, t.OutputTruncated = o.Reason, o.Error, o.ExitCode, o.Signal, o.Output,
		o.Truncated
	t.ErrorLine = o.ErrorLine
	t.Duration, t.ChildrenKilled, t.ChildrenLeft, t.Usage = o.duration(), o.Killed, o.Left, o.usage()
}

// duration is 0 if it's unknown, as in a row from plain SQL without a start or
// an end.
func (o outcome) duration() time.Duration {
	if o.Duration == nil {
		return 0
	}
	return number(*o.Duration).duration()
}

func (o outcome) usage() commands.Usage {
	if o.Usage == nil {
		return commands.Usage{}
	}
	u := *o.Usage
	return commands.Usage{User: number(u[0]).duration(), System: number(u[1]).duration(), MaxRSS: u[2], Read: u[3], Written: u[4]}
}

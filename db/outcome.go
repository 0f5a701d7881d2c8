package db

import (
	"encoding/json"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// outcome is the stored form of the outcome of an attempt: a JSON object, or NULL if all fields are empty.
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

// durationSlack is a time in milliseconds. A duration that differs from the time between start and end by at most durationSlack is not
// stored: the difference comes from rounding. A larger difference means that somebody set the clock during the attempt.
const durationSlack = 1

// encodeOutcome returns the stored form of the outcome of an attempt. It stores the given reason and text instead of the reason and the
// error in the outcome: a cancelled task, for example, has another reason than its last attempt. The parameter "ended" says whether the
// same row also stores the time at which the attempt ended. If so, encodeOutcome leaves out a duration that follows from the start and the
// end.
func encodeOutcome(o taskspec.Outcome, reason jobs.Reason, text string, ended bool) any {
	ms := o.Duration.Milliseconds()
	between := o.Finished.UnixMilli() - o.Started.UnixMilli() - ms
	stored := outcome{Reason: reason, Error: text, ErrorLine: o.ErrorLine, ExitCode: o.ExitCode, Signal: o.Signal, Output: o.OutputBytes,
		Truncated: o.OutputTruncated, Killed: o.ChildrenKilled, Left: o.ChildrenLeft}
	if !ended || between < -durationSlack || between > durationSlack {
		stored.Duration = &ms
	}
	if u := o.Usage; u != (jobs.Usage{}) {
		stored.Usage = &[5]int64{u.User.Round(time.Millisecond).Milliseconds(), u.System.Round(time.Millisecond).Milliseconds(), u.MaxRSS,
			u.Read, u.Written}
	}
	if stored == (outcome{}) {
		return nil
	}
	return jsonText(stored)
}

// outcome decodes the stored outcome of an attempt that lasted from start to end. It treats invalid JSON, which only plain SQL can write,
// as an empty outcome.
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

// duration returns the duration of the attempt, or 0 if it is unknown. It is unknown if plain SQL has written a row without a start or an
// end.
func (o outcome) duration() time.Duration {
	if o.Duration == nil {
		return 0
	}
	return number(*o.Duration).duration()
}

// usage returns the resources that the attempt used, or zero if they are unknown.
func (o outcome) usage() jobs.Usage {
	if o.Usage == nil {
		return jobs.Usage{}
	}
	u := *o.Usage
	return jobs.Usage{User: number(u[0]).duration(), System: number(u[1]).duration(), MaxRSS: u[2], Read: u[3], Written: u[4]}
}

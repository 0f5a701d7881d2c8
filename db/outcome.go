package db

import (
	"encoding/json"
	"time"

	"example.com/runner/jobs"
)

// outcome is the stored form of what an attempt leaves: a JSON object, or NULL when there is nothing to say.
type outcome struct {
	Reason    jobs.Reason `json:"reason,omitempty"`
	Error     string      `json:"error,omitempty"`
	ExitCode  *int        `json:"exit_code,omitempty"`
	Signal    int         `json:"signal,omitempty"`
	Duration  *int64      `json:"duration,omitempty"` // ms; missing: from the start of the attempt to its end
	Output    int64       `json:"output_bytes,omitempty"`
	Truncated bool        `json:"output_truncated,omitempty"`
}

// durationSlack is how many milliseconds a duration may differ from the time between start and end and is still not stored: that difference
// is rounding. The two clocks differ by more when somebody sets the time.
const durationSlack = 1

// encodeOutcome returns the stored form of an attempt's outcome. reason and text are the task's, which may differ from those of the
// attempt; ended says that the task's row has the end of the attempt.
func encodeOutcome(o jobs.Outcome, reason jobs.Reason, text string, ended bool) any {
	ms := o.Duration.Milliseconds()
	between := o.Finished.UnixMilli() - o.Started.UnixMilli() - ms
	stored := outcome{Reason: reason, Error: text, ExitCode: o.ExitCode, Signal: o.Signal, Output: o.OutputBytes,
		Truncated: o.OutputTruncated}
	if !ended || between < -durationSlack || between > durationSlack {
		stored.Duration = &ms
	}
	if stored == (outcome{}) {
		return nil
	}
	return jsonText(stored)
}

// outcome reads the stored form, of an attempt from start to end. A text that no version of runner writes says nothing.
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

// fill sets what a task says of its last attempt.
func (o outcome) fill(t *jobs.Task) {
	t.Reason, t.Error, t.ExitCode, t.Signal, t.OutputBytes, t.OutputTruncated = o.Reason, o.Error, o.ExitCode, o.Signal, o.Output,
		o.Truncated
	t.Duration = o.duration()
}

// duration returns how long the attempt took, or 0 if that is unknown: a row that was written by hand may have no start or no end.
func (o outcome) duration() time.Duration {
	if o.Duration == nil {
		return 0
	}
	return number(*o.Duration).duration()
}

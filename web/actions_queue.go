package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// queueAction pauses or resumes a queue. An empty name means all queues.
func (a *actionRequest) queueAction(ctx context.Context) (actionResult, error) {
	queue, verb := a.form.Get("queue"), strings.TrimPrefix(a.name, "queue-")
	if a.form["queue"] == nil {
		return actionResult{}, &jobs.FieldError{Field: "queue", Msg: "is missing"}
	}
	if len(a.form.Get("reason")) > taskspec.MaxError {
		return actionResult{}, &jobs.FieldError{Field: "reason", Msg: "is too long"}
	}
	what, args := queue, []string{verb, "-q", queue}
	if queue == runner.AllQueues {
		what, args = "all queues", []string{verb, "--all"}
	}
	lasts, err := a.pauseLength(verb)
	if err != nil {
		return actionResult{}, err
	}
	if lasts > 0 {
		args = append(args, "--for", a.form.Get("for"))
	}
	if reason := a.form.Get("reason"); reason != "" && verb == "pause" {
		args = append(args, "--reason", reason)
	}
	d := actionResult{line: what + " paused: running tasks continue, no other task starts", cli: humanize.Safe(shellLine(args...))}
	if d.ask = a.question(verb, what, d.cli); d.ask != nil {
		return d, nil
	}
	switch {
	case verb == "pause" && lasts > 0:
		return d, a.h.r.PauseFor(ctx, lasts, a.form.Get("reason"), queue)
	case verb == "pause":
		return d, a.h.r.Pause(ctx, a.form.Get("reason"), queue)
	}
	d.line = what + " resumed"
	return d, a.h.r.Resume(ctx, queue)
}

// length is how long a pause may last; an empty value has no end.
type length struct{ Value, Name string }

var pauseLengths = []length{{"", "until it is resumed"}, {"15m", "for 15 minutes"}, {"1h", "for 1 hour"}, {"8h", "for 8 hours"},
	{"24h", "for 1 day"}}

// pauseLength returns how long the pause lasts; 0 means until it's resumed.
func (a *actionRequest) pauseLength(verb string) (time.Duration, error) {
	text := a.form.Get("for")
	if verb != "pause" || text == "" {
		return 0, nil
	}
	lasts, err := time.ParseDuration(text)
	if err != nil || lasts <= 0 {
		return 0, &jobs.FieldError{Field: "for", Msg: "is no length of a pause; use 1h or 30m"}
	}
	return lasts, nil
}

// scheduleAction runs, pauses or resumes a schedule.
func (a *actionRequest) scheduleAction(ctx context.Context) (actionResult, error) {
	name, verb := a.form.Get("name"), strings.TrimPrefix(a.name, "schedule-")
	if err := taskspec.ValidSchedule(name); err != nil {
		return actionResult{}, err
	}
	d := actionResult{cli: humanize.Safe(shellLine("schedule", verb, name))}
	if d.ask = a.question(verb, "schedule "+name, d.cli); d.ask != nil {
		return d, nil
	}
	switch verb {
	case "pause":
		d.line = "schedule " + name + " paused"
		return d, a.h.r.PauseSchedule(ctx, name)
	case "resume":
		d.line = "schedule " + name + " resumed"
		return d, a.h.r.ResumeSchedule(ctx, name)
	}
	return a.h.last.doOnce(ctx, name, func(ctx context.Context) (actionResult, error) {
		t, err := a.h.r.RunSchedule(ctx, name)
		d.line = fmt.Sprintf("task %d of schedule %s enqueued", t.ID, name)
		return d, err
	})
}

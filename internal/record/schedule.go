package record

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// NewSchedule returns the record of a schedule. If reveal is set, it has the
// values of variables, and the input.
func NewSchedule(s jobs.Schedule, reveal bool) term.Record {
	task := NewScheduleTask(s.Spec)
	if reveal {
		task = Reveal(task, s.Spec.Env, s.Spec.Input)
	}
	var lasted any
	if s.LastState.Finished() {
		lasted = term.Seconds(s.LastDuration)
	}
	return term.NewRecord("name", s.Name, "cron", s.Cron, "zone", s.Zone, "overlap", s.Overlap,
		"catch_up", s.CatchUp, "catch_up_window", term.Seconds(s.CatchUpWindow), "jitter", term.Seconds(s.Jitter),
		"alert_after", term.Known(term.Seconds(s.AlertAfter)), "on_tick", s.OnTick,
		"paused", !s.PausedAt.IsZero(), "next_at", term.Stamp(s.NextAt), "last_at", term.Stamp(s.LastAt),
		"last_task_id", term.Known(s.LastTaskID), "last_state", term.Known(s.LastState), "last_duration", lasted,
		"last_success", term.Stamp(s.LastSuccess), "skipped", s.Skipped, "task", task,
		"created_at", term.Stamp(s.CreatedAt), "updated_at", term.Stamp(s.UpdatedAt))
}

// NewFullSchedule returns the record of a schedule with its next ticks.
func NewFullSchedule(s jobs.Schedule, reveal bool, next []time.Time) term.Record {
	return NewSchedule(s, reveal).With("next", List(next, func(t time.Time) term.Stamp { return term.Stamp(t) }))
}

// NewAppliedSchedule returns the record of a schedule with what "schedule apply"
// did to it.
func NewAppliedSchedule(s jobs.Schedule, did string) term.Record {
	return NewSchedule(s, false).With("applied", did)
}

// NewScheduleTask returns the record of the task that a schedule enqueues.
func NewScheduleTask(s jobs.Spec) term.Record {
	r := term.NewRecord("job", s.Job, "args", term.Raw(s.Args))
	for i := range taskspec.OptionList() {
		if o := &taskspec.OptionList()[i]; !o.OneTask && o.Key != "input" {
			r = withOption(r, o, &s)
		}
	}
	return r.With("input_bytes", len(s.Input))
}

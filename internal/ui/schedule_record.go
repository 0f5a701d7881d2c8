package ui

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// NewSchedule returns the record of a schedule. If reveal is set, it has the
// values of variables, and the input.
func NewSchedule(s jobs.Schedule, reveal bool) Record {
	task := NewScheduleTask(s.Spec)
	if reveal {
		task = Reveal(task, s.Spec.Env, s.Spec.Input)
	}
	var lasted any
	if s.LastState.Finished() {
		lasted = Seconds(s.LastDuration)
	}
	return NewRecord("name", s.Name, "cron", s.Cron, "zone", s.Zone, "overlap", s.Overlap,
		"catch_up", s.CatchUp, "catch_up_window", Seconds(s.CatchUpWindow), "jitter", Seconds(s.Jitter),
		"alert_after", Known(Seconds(s.AlertAfter)), "on_tick", s.OnTick,
		"paused", !s.PausedAt.IsZero(), "next_at", Stamp(s.NextAt), "last_at", Stamp(s.LastAt),
		"last_task_id", Known(s.LastTaskID), "last_state", Known(s.LastState), "last_duration", lasted,
		"last_success", Stamp(s.LastSuccess), "skipped", s.Skipped, "task", task,
		"created_at", Stamp(s.CreatedAt), "updated_at", Stamp(s.UpdatedAt))
}

// NewFullSchedule returns the record of a schedule with its next ticks.
func NewFullSchedule(s jobs.Schedule, reveal bool, next []time.Time) Record {
	return NewSchedule(s, reveal).With("next", Records(next, func(t time.Time) Stamp { return Stamp(t) }))
}

// NewAppliedSchedule returns the record of a schedule with what "schedule apply"
// did to it.
func NewAppliedSchedule(s jobs.Schedule, did string) Record {
	return NewSchedule(s, false).With("applied", did)
}

// NewScheduleTask returns the record of the task that a schedule enqueues.
func NewScheduleTask(s jobs.Spec) Record {
	r := NewRecord("job", s.Job, "args", Raw(s.Args))
	for _, o := range taskspec.Options {
		if !o.OneTask && o.Key != "input" {
			r = withOption(r, o, &s)
		}
	}
	return r.With("input_bytes", len(s.Input))
}

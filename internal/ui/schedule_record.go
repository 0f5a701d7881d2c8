package ui

import (
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// NewSchedule returns a schedule's record. With reveal, it has the values of
// variables, and the input.
func NewSchedule(s jobs.Schedule, now time.Time, reveal bool) Record {
	task := NewScheduleTask(s.Spec)
	if reveal {
		task = Reveal(task, s.Spec.Env, s.Spec.Input)
	}

	took := Member{Key: "last_duration", Name: "TOOK", Right: true, Drop: 2}
	if s.LastState.Finished() {
		took.Value, took.Text = Seconds(s.LastDuration), humanize.Took(s.LastDuration)
	}

	return NewRecord(
		Member{Key: "name", Value: s.Name, Name: "NAME", Narrow: true},
		Member{Key: "cron", Value: s.Cron, Name: "CRON", Drop: 3},
		Member{Key: "zone", Value: s.Zone, Name: "ZONE", Drop: 1},
		"overlap", s.Overlap, "catch_up", s.CatchUp, "catch_up_window", Seconds(s.CatchUpWindow),
		"jitter", Seconds(s.Jitter), "alert_after", Known(Seconds(s.AlertAfter)),
		"on_tick", s.OnTick, "paused", !s.PausedAt.IsZero(),
		Member{Key: "next_at", Value: Stamp(s.NextAt), Name: "NEXT", Text: nextText(s, now)},
		"last_at", Stamp(s.LastAt), "last_task_id", Known(s.LastTaskID),
		Member{Key: "last_state", Value: Known(s.LastState), Name: "LAST", Text: lastText(s, now),
			Drop: 4, Paint: lastColour},
		took,
		"last_success", Stamp(s.LastSuccess), "skipped", s.Skipped, "task", task,
		Member{Name: "JOB", Value: specText(s.Spec)},
		"created_at", Stamp(s.CreatedAt), "updated_at", Stamp(s.UpdatedAt))
}

// NewFullSchedule returns a schedule's record with its next ticks.
func NewFullSchedule(s jobs.Schedule, now time.Time, reveal bool, next []time.Time) Record {
	return NewSchedule(s, now, reveal).With("next", Records(next, func(t time.Time) Stamp { return Stamp(t) }))
}

// NewAppliedSchedule returns a schedule's record with what schedule apply did.
func NewAppliedSchedule(s jobs.Schedule, now time.Time, did string) Record {
	return NewSchedule(s, now, false).With("applied", did)
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

package taskspec

import (
	"fmt"
	"time"

	"example.com/runner/jobs"
)

// Late reports whether a schedule has gone without a completed task for longer than its AlertAfter. The result "since" is the time from
// which Late counts: the end of the last completed task, or the last change of the schedule, whichever is later. A paused schedule is never
// late.
func Late(s *jobs.Schedule, now time.Time) (since time.Time, late bool) {
	if since = s.LastSuccess; since.Before(s.UpdatedAt) {
		since = s.UpdatedAt
	}
	return since, s.AlertAfter > 0 && s.PausedAt.IsZero() && now.Sub(since) > s.AlertAfter
}

// AlertSpec returns the task that runs the hook for the alert of a late
// schedule. h has the hooks of the schedule's tasks, with their defaults. The
// hook of an alert is OnFailure. Without one, AlertSpec returns false.
func AlertSpec(s *jobs.Schedule, h jobs.Hooks, now time.Time) (jobs.Spec, bool) {
	if h.OnFailure == "" {
		return jobs.Spec{}, false
	}

	since, _ := Late(s, now)
	text := fmt.Sprintf("no task of schedule %s has completed for %v", s.Name, now.Sub(since).Round(time.Second))
	task := NewTask(&s.Spec, now)
	task.ID, task.Schedule = s.LastTaskID, s.Name
	spec := HookSpec(Hook{EventLate, h.OnFailure}, task, Outcome{}, Change{State: s.LastState, Error: text}, nil)
	spec.Label = "alert of schedule " + s.Name
	return spec, true
}

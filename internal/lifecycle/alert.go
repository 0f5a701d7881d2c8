package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// These constants say when the run of a task counts as unusually long.
const (
	UsualRuns = 100         // maximum number of earlier runs from which the usual duration is computed
	leastRuns = 20          // with fewer earlier runs, no run counts as slow
	slowTimes = 2           // a run is slow if it takes more than this multiple of the 95th percentile
	leastSlow = time.Second // a run of at most this duration is never slow
)

// Usual returns the 95th percentile of durations, or 0 if there are fewer than 20.
func Usual(durations []time.Duration) time.Duration {
	if len(durations) < leastRuns {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)*95+99)/100-1]
}

// Late reports whether a schedule has gone without a completed task for longer than its AlertAfter. The result "since" is the time from
// which Late counts: the end of the last completed task, or the last change of the schedule, whichever is later. A paused schedule is never
// late.
func Late(s *jobs.Schedule, now time.Time) (since time.Time, late bool) {
	if since = s.LastSuccess; since.Before(s.UpdatedAt) {
		since = s.UpdatedAt
	}
	return since, s.AlertAfter > 0 && s.PausedAt.IsZero() && now.Sub(since) > s.AlertAfter
}

// Slow reports whether the last task of a schedule has been running for more than twice its usual time, the 95th percentile of earlier
// runs.
func Slow(s *jobs.Schedule, now time.Time) bool {
	return s.LastState == jobs.Running && s.Usual > 0 && now.Sub(s.LastStart) > max(slowTimes*s.Usual, leastSlow)
}

// AlertSpec returns the task that runs the hook for an alert of a schedule. The event is EventLate or EventSlow. The parameter h contains
// the hooks of the schedule's tasks, with their defaults. The hook for an alert is OnFailure. If OnFailure is empty, AlertSpec returns
// false.
func AlertSpec(s *jobs.Schedule, event string, h jobs.Hooks, now time.Time) (jobs.Spec, bool) {
	if h.OnFailure == "" {
		return jobs.Spec{}, false
	}
	since, _ := Late(s, now)
	text := fmt.Sprintf("no task of schedule %s has completed for %v", s.Name, now.Sub(since).Round(time.Second))
	var o Outcome
	if event == taskspec.EventSlow {
		o.Duration = now.Sub(s.LastStart)
		text = fmt.Sprintf("task %d of schedule %s has run for %v, more than twice the usual %v", s.LastTaskID, s.Name,
			o.Duration.Round(time.Second), s.Usual.Round(time.Millisecond))
	}
	task := NewTask(&s.Spec, now)
	task.ID, task.Schedule = s.LastTaskID, s.Name
	spec := HookSpec(Hook{event, h.OnFailure}, task, o, Change{State: s.LastState, Error: text}, nil)
	spec.Label = "alert of schedule " + s.Name
	return spec, true
}

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// These constants define when a task runs for much longer than usual.
const (
	UsualRuns = 100 // greatest number of completed tasks whose durations count
	leastRuns = 20  // with fewer tasks, the 95th percentile is unknown
	slowTimes = 2   // a task is slow after this multiple of the percentile; about one task in 20 exceeds the percentile itself
	leastSlow = time.Second
)

// Usual returns the 95th percentile of durations, or 0 if there are fewer than 20.
func Usual(durations []time.Duration) time.Duration {
	if len(durations) < leastRuns {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)*95+99)/100-1]
}

// Late reports whether no task of a schedule has completed for longer than AlertAfter. The result since is the time from which AlertAfter
// counts: the last success, or the last change of the schedule. A paused schedule is not late.
func Late(s *jobs.Schedule, now time.Time) (since time.Time, late bool) {
	if since = s.LastSuccess; since.Before(s.UpdatedAt) {
		since = s.UpdatedAt
	}
	return since, s.AlertAfter > 0 && s.PausedAt.IsZero() && now.Sub(since) > s.AlertAfter
}

// Slow reports whether the last task of a schedule runs for more than twice the 95th percentile of the tasks before it.
func Slow(s *jobs.Schedule, now time.Time) bool {
	return s.LastState == jobs.Running && s.Usual > 0 && now.Sub(s.LastStart) > max(slowTimes*s.Usual, leastSlow)
}

// AlertSpec returns the hook for an alert of a schedule. The event is EventLate or EventSlow, and h has the hooks of the task with their
// defaults. The hook is OnFailure. If there is none, AlertSpec returns false.
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

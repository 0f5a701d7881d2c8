package taskspec

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

const (
	maxCron    = 1000        // bytes of a cron expression
	MinEvery   = time.Second // shortest period of @every
	maxCatchUp = 100         // tasks that CatchUpAll enqueues at once

	defaultCatchUpWindow = 24 * time.Hour

	onTimeWithin = time.Minute // a tick counts as missed if it has been due for longer
)

// WithDefaults returns a schedule with its empty fields set to their defaults.
func WithDefaults(s jobs.Schedule) jobs.Schedule {
	s.Zone = cmp.Or(s.Zone, "UTC")
	s.Overlap = cmp.Or(s.Overlap, jobs.OverlapSkip)
	s.CatchUp = cmp.Or(s.CatchUp, jobs.CatchUpOne)
	s.CatchUpWindow = cmp.Or(s.CatchUpWindow, defaultCatchUpWindow)
	return s
}

// ValidateSchedule returns the first error that it finds in a schedule that has
// its defaults. Package cron checks Cron and Zone.
func ValidateSchedule(s *jobs.Schedule) error {
	if err := ValidSchedule(s.Name); err != nil {
		return err
	}

	switch {
	case !slices.Contains([]jobs.Overlap{jobs.OverlapSkip, jobs.OverlapAllow, jobs.OverlapReplace}, s.Overlap):
		return invalid("overlap", "invalid value %q; use skip, allow or replace", s.Overlap)
	case !slices.Contains([]jobs.CatchUp{jobs.CatchUpOne, jobs.CatchUpSkip, jobs.CatchUpAll}, s.CatchUp):
		return invalid("catch_up", "invalid value %q; use one, skip or all", s.CatchUp)
	case len(s.Cron) > maxCron:
		return invalid("cron", "%d bytes; at most %d", len(s.Cron), maxCron)
	case s.Overlap == jobs.OverlapReplace && s.CatchUp == jobs.CatchUpAll:
		return invalid("catch_up", "all does not go with overlap replace: each task would replace the one before it")
	case s.CatchUpWindow <= 0 || s.CatchUpWindow > MaxDelay:
		return invalid("catch_up_window", "%v is out of range (1 ms to 10 years)", s.CatchUpWindow)
	case s.Jitter < 0 || s.Jitter > MaxDelay:
		return invalid("jitter", "%v is out of range (0 to 10 years)", s.Jitter)
	case s.AlertAfter < 0 || s.AlertAfter > MaxDelay:
		return invalid("alert_after", "%v is out of range (0 to 10 years)", s.AlertAfter)
	case s.Spec.Err != nil:
		return s.Spec.Err
	case !s.Spec.RunAt.IsZero() || s.Spec.In != 0:
		return invalid("run_at", "the schedule says when its tasks are due")
	case !s.Spec.ExpiresAt.IsZero():
		return invalid("expires_at", "a schedule has many tasks; give expires_in")
	case s.Spec.Paused:
		return invalid("paused", "pause the schedule instead")
	case s.Spec.UniqueKey != "" || s.Spec.Unique.Args:
		return invalid("unique_key", "overlap says what happens while an earlier task is unfinished")
	case s.Spec.Batch != 0:
		return invalid("batch", "the tasks of a schedule belong to no batch")
	}

	return Validate(&s.Spec)
}

// ValidSchedule checks the name of a schedule, which has the form of a queue's.
func ValidSchedule(name string) error { return validName("schedule", name, "._-") }

// AtBoot reports whether a cron expression means a tick at each boot of a
// machine.
func AtBoot(cron string) bool { return strings.EqualFold(strings.TrimSpace(cron), "@reboot") }

// TickSpec returns the Spec of the task for a tick. The task is due at the
// tick, or up to Jitter later. This delay is a hash of the schedule's name and
// the tick: schedules spread out, and every worker computes the same delay.
func TickSpec(s *jobs.Schedule, tick time.Time) jobs.Spec {
	spec := s.Spec
	spec.Schedule, spec.Tick, spec.RunAt = s.Name, tick, tick
	if s.Jitter > 0 {
		name := fnv.New64a()
		name.Write([]byte(s.Name))
		part := chance(name.Sum64(), uint64(tick.UnixMilli()))
		spec.RunAt = tick.Add(time.Duration(float64(s.Jitter) * part)).Truncate(time.Millisecond)
	}
	return spec
}

// CaughtUp returns the due ticks that get a task now, oldest first. If several
// are due, or the last one is more than a minute late, the schedule's CatchUp
// decides. newest returns the last n ticks from a time until now, oldest first.
func CaughtUp(s *jobs.Schedule, newest func(from time.Time, n int) []time.Time, now time.Time) []time.Time {
	last := newest(s.NextAt, 1)
	if len(last) == 0 { // the times have changed since NextAt was due, and have no tick yet
		last = []time.Time{s.NextAt}
	}

	onTime := len(last) > 0 && now.Sub(last[0]) <= onTimeWithin
	switch {
	case s.CatchUp == jobs.CatchUpSkip && !onTime:
		return nil
	case s.CatchUp == jobs.CatchUpAll:
		from := now.Add(-s.CatchUpWindow)
		if from.Before(s.NextAt) {
			from = s.NextAt
		}
		if all := newest(from, maxCatchUp); len(all) > 0 || !onTime && from.After(s.NextAt) {
			return all
		}
	}

	return last
}

// Late reports whether a schedule has gone without a completed task for longer
// than its AlertAfter. Time counts from since: the end of the last completed
// task or the last change of the schedule, whichever is later. A paused
// schedule is never late.
func Late(s *jobs.Schedule, now time.Time) (since time.Time, late bool) {
	if since = s.LastSuccess; since.Before(s.UpdatedAt) {
		since = s.UpdatedAt
	}
	return since, s.AlertAfter > 0 && s.PausedAt.IsZero() && now.Sub(since) > s.AlertAfter
}

// AlertSpec returns the task that runs the hook for the alert of a late
// schedule. h has the hooks of the schedule's tasks, with their defaults. The
// hook of an alert is OnFailure. Without one, AlertSpec returns false.
func AlertSpec(s *jobs.Schedule, h command.Hooks, now time.Time) (jobs.Spec, bool) {
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

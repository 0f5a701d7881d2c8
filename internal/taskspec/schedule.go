package taskspec

import "example.com/runner/jobs"

// ValidateSchedule returns the first error that it finds in a schedule. Call WithDefaults before it. It does not check Cron and Zone;
// package cron does.
func ValidateSchedule(s *jobs.Schedule) error {
	if err := ValidSchedule(s.Name); err != nil {
		return err
	}
	switch s.Overlap {
	case jobs.OverlapSkip, jobs.OverlapAllow, jobs.OverlapReplace:
	default:
		return invalid("overlap", "invalid value %q; use skip, allow or replace", s.Overlap)
	}
	switch s.CatchUp {
	case jobs.CatchUpOne, jobs.CatchUpSkip, jobs.CatchUpAll:
	default:
		return invalid("catch_up", "invalid value %q; use one, skip or all", s.CatchUp)
	}
	switch {
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
	case s.Spec.UniqueKey != "" || s.Spec.UniqueArgs:
		return invalid("unique_key", "overlap says what happens while an earlier task is unfinished")
	case s.Spec.Batch != 0:
		return invalid("batch", "the tasks of a schedule belong to no batch")
	}
	return Validate(&s.Spec)
}

// ValidSchedule checks the name of a schedule. The rules are the same as for the name of a queue.
func ValidSchedule(name string) error { return validName("schedule", name, "._-") }

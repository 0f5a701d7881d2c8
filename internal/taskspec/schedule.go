package taskspec

import (
	"cmp"
	"fmt"

	"example.com/runner/jobs"
)

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

// Differences compares the definitions of two schedules. It returns texts such as "cron is 0 3 * * *, not 0 4 * * *". The texts do not
// contain the input and the values of env.
func Differences(s, to *jobs.Schedule) []string {
	var list []string
	differ := func(field string, was, is any) {
		if a, b := fmt.Sprint(was), fmt.Sprint(is); a != b {
			list = append(list, fmt.Sprintf("%s is %s, not %s", field, cmp.Or(a, "none"), cmp.Or(b, "none")))
		}
	}
	differ("cron", s.Cron, to.Cron)
	differ("zone", s.Zone, to.Zone)
	differ("overlap", s.Overlap, to.Overlap)
	differ("catch_up", s.CatchUp, to.CatchUp)
	differ("catch_up_window", s.CatchUpWindow, to.CatchUpWindow)
	differ("jitter", s.Jitter, to.Jitter)
	differ("alert_after", s.AlertAfter, to.AlertAfter)
	differ("on_tick", s.OnTick, to.OnTick)
	a, b := &s.Spec, &to.Spec
	differ("job", a.Job, b.Job)
	differ("args", string(a.Args), string(b.Args))
	for i := range taskOptions {
		option := &taskOptions[i]
		was, is := option.Field(a), option.Field(b)
		_, isMap := was.(*Texts)
		switch {
		case was.equal(is):
		case isMap || option.Key == "input":
			list = append(list, option.Key)
		case !option.OneTask:
			list = append(list, fmt.Sprintf("%s is %s, not %s", option.Key, cmp.Or(was.String(), "none"), cmp.Or(is.String(), "none")))
		}
	}
	return list
}

package taskspec

import (
	"hash/fnv"
	"strings"
	"time"

	"example.com/runner/jobs"
)

const (
	maxCatchUp   = 100         // maximum number of tasks that CatchUpAll enqueues at once
	onTimeWithin = time.Minute // a tick counts as missed if it has been due for longer than this
)

// AtBoot reports whether a cron expression means a tick at each boot of a machine. Other expressions mean ticks at given times.
func AtBoot(cron string) bool { return strings.EqualFold(strings.TrimSpace(cron), "@reboot") }

// TickSpec returns the Spec of the task for a tick. The task is due at the tick, or up to Jitter later. This delay is a hash of the
// schedule's name and the tick: the tasks of different schedules spread out, and every worker computes the same delay.
func TickSpec(s *jobs.Schedule, tick time.Time) jobs.Spec {
	spec := s.Spec
	spec.Schedule, spec.Tick = s.Name, tick
	spec.RunAt = tick
	if s.Jitter > 0 {
		name := fnv.New64a()
		name.Write([]byte(s.Name))
		spec.RunAt = tick.Add(time.Duration(float64(s.Jitter) * chance(name.Sum64(), uint64(tick.UnixMilli())))).Truncate(time.Millisecond)
	}
	return spec
}

// CaughtUp returns the due ticks that get a task now, oldest first. If several ticks are due, or the last one is more than a minute late,
// the schedule's option CatchUp decides which of them get a task. The function "newest" returns the last n ticks from the time "from" until
// now, oldest first.
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

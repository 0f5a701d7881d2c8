package cron

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Due returns the ticks for which a schedule must enqueue a task at the time now, oldest first. It also returns the first tick after now.
func Due(s jobs.Schedule, now time.Time) (due []time.Time, next time.Time, err error) {
	x, err := Parse(s.Cron, s.Zone)
	if err != nil {
		return nil, time.Time{}, err
	}
	switch {
	case s.NextAt.IsZero():
		return nil, x.Next(now), nil
	case x.atBoot: // the first worker in a boot has set NextAt to the time of its start
		return []time.Time{s.NextAt}, time.Time{}, nil
	case s.NextAt.After(now):
		return nil, x.realign(s.NextAt, now), nil
	case x.every > 0:
		next = s.NextAt.Add((now.Sub(s.NextAt)/x.every + 1) * x.every)
	default:
		next = x.Next(now)
	}
	due = taskspec.CaughtUp(&s, func(from time.Time, n int) []time.Time { return x.newest(s.NextAt, from, now, n) }, now)
	return due, next, nil
}

// realignFrom is the smallest error that realign corrects. The error is the time by which the stored tick of an @every schedule is too far
// in the future.
const realignFrom = time.Minute

// realign returns the first tick after now. The parameter "at" is the next tick that was computed earlier and stored. The two ticks differ
// if the clock was set back, or if the rules of the zone have changed, since the stored tick was computed. The schedule does not repeat a
// tick that already has a task.
//
// Ticks of @every have no fixed moments, so realign keeps the stored tick unless it is too far in the future. The parameter "now" may be a
// bit old: a worker reads its clock and then waits for the write lock. Meanwhile another worker may enqueue the task of the stored tick and
// store the tick after it. So realign accepts a stored tick that is up to one interval plus realignFrom after now.
func (x *Expression) realign(at, now time.Time) time.Time {
	next := x.Next(now)
	if x.every > 0 && at.Sub(next) < realignFrom {
		return at
	}
	return next
}

// newest returns the last n ticks from the time "from" to the time "to", both included, oldest first. If there are fewer than n, it returns
// all of them. Only @every uses the parameter "first", which is a tick that is not after "from": all ticks of @every are counted from it.
func (x *Expression) newest(first, from, to time.Time, n int) []time.Time {
	if x.every > 0 {
		last := to.Sub(first) / x.every
		var list []time.Time
		for i := max(last-time.Duration(n)+1, 0); i <= last; i++ {
			if tick := first.Add(i * x.every); !tick.Before(from) {
				list = append(list, tick)
			}
		}
		return list
	}
	// A day may have thousands of ticks, and the last tick may be years ago. So the loop searches the last hour before the parameter "to",
	// and then longer and longer spans of time.
	for span := time.Hour; ; span *= 6 {
		start := to.Add(-span)
		if span > 100*365*24*time.Hour || start.Before(from) {
			start = from
		}
		var list []time.Time
		for tick := x.Next(start.Add(-time.Millisecond)); !tick.IsZero() && !tick.After(to); tick = x.Next(tick) {
			list = append(list, tick)
		}
		if len(list) >= n || start.Equal(from) {
			return list[max(len(list)-n, 0):]
		}
	}
}

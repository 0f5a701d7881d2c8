package cron

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Due returns the ticks for which a schedule must enqueue a task at the time
// now, oldest first. It also returns the first tick after now.
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

// realignFrom is the smallest error that realign corrects. The error is the
// time by which the stored tick of an @every schedule is too far in the future.
const realignFrom = time.Minute

// realign returns the first tick after now, in place of the stored one. They
// differ if the clock was set back, or the rules of the zone have changed,
// since the stored tick was computed. A tick that already has a task isn't
// repeated.
//
// Ticks of @every have no fixed moments, so realign keeps the stored tick
// unless it's too far in the future. now may be a bit old: a worker reads its
// clock and then waits for the write lock, while another may enqueue the task
// of the stored tick and store the next. So a stored tick may be up to one
// interval plus realignFrom after now.
func (x *Expression) realign(stored, now time.Time) time.Time {
	next := x.Next(now)
	if x.every > 0 && stored.Sub(next) < realignFrom {
		return stored
	}
	return next
}

// newest returns the last n ticks in the span from start to end, both included,
// oldest first; fewer if there are fewer. The ticks of @every are counted from
// first, a tick that isn't after start.
func (x *Expression) newest(first, start, end time.Time, n int) []time.Time {
	if x.every > 0 {
		last := end.Sub(first) / x.every
		var list []time.Time
		for i := max(last-time.Duration(n)+1, 0); i <= last; i++ {
			if tick := first.Add(i * x.every); !tick.Before(start) {
				list = append(list, tick)
			}
		}

		return list
	}
	// A day may have thousands of ticks, and the last tick may be years ago. So
	// we search the last hour before end, and then longer and longer spans.
	for span := time.Hour; ; span *= 6 {
		from := end.Add(-span)
		if span > 100*365*24*time.Hour || from.Before(start) {
			from = start
		}

		var list []time.Time
		for tick := x.Next(from.Add(-time.Millisecond)); !tick.IsZero() && !tick.After(end); tick = x.Next(tick) {
			list = append(list, tick)
		}

		if len(list) >= n || from.Equal(start) {
			return list[max(len(list)-n, 0):]
		}
	}
}

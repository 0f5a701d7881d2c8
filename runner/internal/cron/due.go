package cron

import (
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// Due returns the ticks of a schedule that are due at now and get a task, oldest first, and the first tick after now.
func Due(s jobs.Schedule, now time.Time) (due []time.Time, next time.Time, err error) {
	x, err := Parse(s.Cron, s.Zone)
	if err != nil {
		return nil, time.Time{}, err
	}
	switch {
	case s.NextAt.IsZero():
		return nil, x.Next(now), nil
	case s.NextAt.After(now):
		return nil, x.realign(s.NextAt, now), nil
	case x.every > 0:
		next = s.NextAt.Add((now.Sub(s.NextAt)/x.every + 1) * x.every)
	default:
		next = x.Next(now)
	}
	due = lifecycle.CaughtUp(&s, func(from time.Time, n int) []time.Time { return x.newest(s.NextAt, from, now, n) }, now)
	return due, next, nil
}

// realignFrom is the least error of a tick of @every that realign corrects.
const realignFrom = time.Minute

// realign returns the first tick after now. at is the tick that was computed earlier and still lies ahead. The two differ when the clock
// was set back, or when the rules of the zone have changed. A tick that had its task is not repeated.
//
// Ticks of @every have no moments of their own, so at stays unless it is too far away. A worker reads its clock and then waits for its
// turn to write; other workers may have done some ticks meanwhile. So at may lie up to realignFrom further ahead than one interval.
func (x *Expression) realign(at, now time.Time) time.Time {
	next := x.Next(now)
	if x.every > 0 && at.Sub(next) < realignFrom {
		return at
	}
	return next
}

// newest returns the newest ticks between two moments, both included: at most n, oldest first. first is a tick.
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
	// A day may have thousands of ticks, and the last tick may lie years back: look through longer and longer spans.
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

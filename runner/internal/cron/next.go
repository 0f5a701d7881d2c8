package cron

import "time"

// Next returns the first tick after a moment, or the zero time if there is
// none, as for @reboot. Ticks of @every have no fixed moments, so their next
// tick is the given moment plus the interval.
func (x *Expression) Next(after time.Time) time.Time {
	switch {
	case x.atBoot:
		return time.Time{}
	case x.every > 0:
		return after.Truncate(time.Second).Add(x.every)
	case x.often:
		return x.nextOften(after)
	}

	wall := wallTime(after, x.zone)
	for {
		var ok bool
		if wall, ok = x.onClock(wall); !ok {
			return time.Time{}
		}
		if tick := moment(wall, x.zone); tick.After(after) {
			return tick
		}
	}
}

// nextOften is Next for ticks that follow real time. It searches one period
// after the other. A period is a time in which the offset of the zone does not
// change.
func (x *Expression) nextOften(after time.Time) time.Time {
	from := after
	for {
		local := from.In(x.zone)
		_, end := local.ZoneBounds()
		wall, ok := x.onClock(wallTime(from, x.zone))
		if !ok {
			return time.Time{}
		}

		_, offset := local.Zone()
		tick := wall.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || tick.Before(end) {
			return tick
		}

		// The moment at which the offset changes may be a tick. onClock finds
		// only times after its argument, so we begin one second earlier.
		_, offset = end.Zone()
		if wall, ok = x.onClock(wallTime(end, x.zone).Add(-time.Second)); ok {
			if tick = wall.Add(-time.Duration(offset) * time.Second); tick.Equal(end) {
				return tick
			}
		}

		from = end
	}
}

// wallTime returns the reading of the clock of a zone at a moment, stored as if
// it were UTC.
func wallTime(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moment returns the first moment at which the clock of a zone shows a time. If
// the clock skips the time, moment returns the moment of the jump.
func moment(wall time.Time, zone *time.Location) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	start, end := at.ZoneBounds()
	switch shown := wallTime(at, zone); {
	case shown.Before(wall): // the clock skips wall, and at is before the jump
		return end.UTC()
	case shown.After(wall): // the clock skips wall, and at is after the jump
		return start.UTC()
	}

	if !start.IsZero() {
		_, offset := start.Add(-time.Second).In(zone).Zone()
		if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(start) {
			return first
		}
	}

	return at.UTC()
}

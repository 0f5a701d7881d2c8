package humanize

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Help lists the formats of a time, for the help of commands.
const Help = `TIMES
  15:04, 5pm, 5:30pm      the next such time; for --since, --until, the last one
  tomorrow 03:00          a day and a time; or today 5pm, yesterday 15:04
  2026-01-31              00:00 of that day
  2026-01-31 15:04[:05]   local time; or 2026-01-31T15:04, 2026-01-31 5pm
  2026-01-31T15:04:05Z    UTC; or 2026-01-31T15:04:05+01:00, with an offset
  +10m, -1.5h             in 10 minutes; 1.5 hours ago
  10m, today, yesterday   with --since, --until: 10 minutes ago, or at 00:00
  @1790000000             seconds since 1970, as date +%s prints them
`

// Callers put the typed text before these errors.
var (
	errTime = errors.New("invalid time; use 15:04, 5pm, tomorrow 03:00, 2026-01-31 [15:04], " +
		"2026-01-31T15:04:05Z, +10m or @1790000000")
	errWhen = errors.New("invalid time; use 90m (ago), 15:04, 5pm, yesterday 03:00, 2026-01-31 [15:04], " +
		"2026-01-31T15:04:05Z or @1790000000")
	errSign = errors.New("invalid time; use + before a duration from now")
	errDay  = errors.New("missing time of day; use a time such as 03:00 after the day")
)

// ParseTime parses a time in the future; see Help. Without a zone of its own it
// is in zone, and a time of day without a date is the next one after now.
func ParseTime(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if _, err := ParseDuration(text); err == nil && text != "0" {
		return time.Time{}, errSign
	}
	return parse(text, now, zone, 1, errTime)
}

// ParseWhen parses a time in the past; see Help. A duration without a sign is
// counted back from now, and a time of day without a date is the last one
// before now.
func ParseWhen(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if d, err := ParseDuration(text); err == nil && text != "0" {
		return now.Add(-d), nil
	} else if errors.Is(err, errUnits) {
		return time.Time{}, err
	}
	return parse(text, now, zone, -1, errWhen)
}

// parse parses all formats except a duration without a sign. Direction 1 is for
// the next time of day, -1 for the last one. It returns the error invalid for
// any other text.
func parse(text string, now time.Time, zone *time.Location, direction int, invalid error) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", time.DateTime, "2006-01-02 15:04",
		"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}

	switch {
	case text == "":
		return time.Time{}, invalid
	case text[0] == '+' || text[0] == '-':
		d, err := ParseDuration(text[1:])
		if text[0] == '-' {
			d = -d
		}
		return now.Add(d), err
	case text[0] == '@':
		seconds, err := strconv.ParseInt(text[1:], 10, 64)
		if t := time.Unix(seconds, 0); err == nil && 0 <= seconds && t.UTC().Year() <= 9999 {
			return t, nil
		}
		return time.Time{}, invalid
	}

	if clock, ok := parseClock(text); ok {
		at := onDay(now.In(zone), 0, clock, zone)
		if at.After(now) != (direction > 0) {
			at = onDay(now.In(zone), direction, clock, zone)
		}
		return at, nil
	}

	return parseDay(text, now.In(zone), zone, direction, invalid)
}

// parseDay parses a day and a time of day. The past also knows a day alone.
func parseDay(text string, now time.Time, zone *time.Location, direction int, invalid error) (time.Time, error) {
	day, rest, timed := strings.Cut(text, " ")
	clock, ok := parseClock(rest)
	date, err := time.ParseInLocation(time.DateOnly, day, zone)
	days, relative := map[string]int{"yesterday": -1, "today": 0, "tomorrow": 1}[day]
	if relative {
		date, err = now, nil
	}

	switch {
	case relative && !timed && (direction > 0 || days > 0):
		return time.Time{}, errDay
	case err == nil && (ok || relative && !timed):
		return onDay(date, days, clock, zone), nil
	}

	return time.Time{}, invalid
}

// parseClock parses a time of day: 15:04, 5pm or 5:30pm.
func parseClock(text string) (time.Time, bool) {
	for _, layout := range []string{"15:04", "15:04:05", "3pm", "3:04pm"} {
		if t, err := time.Parse(layout, strings.ToLower(text)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// onDay returns clock's time of day, on the day that is so many days after
// date.
func onDay(date time.Time, days int, clock time.Time, zone *time.Location) time.Time {
	return time.Date(date.Year(), date.Month(), date.Day()+days, clock.Hour(), clock.Minute(), clock.Second(), 0, zone)
}

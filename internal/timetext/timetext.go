// Package timetext parses and formats durations and times as people type them.
package timetext

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse errors. Each continues a line that begins with the text that the user typed.
var (
	errUnits    = errors.New("missing unit; use 250ms, 10s, 5m, 2h, 1d or 1w")
	errDuration = errors.New("invalid duration; use 250ms, 10s, 5m, 2h, 1d, 1w, or a sum such as 1h30m")
	errLong     = errors.New("too long")
	errTime     = errors.New("invalid time; use 15:04, 2026-01-31 15:04[:05], or 2026-01-31T15:04:05Z")
	errWhen     = errors.New("invalid time; use 90m (ago), 15:04, 2026-01-31, 2026-01-31 15:04[:05], or 2026-01-31T15:04:05Z")
)

// units are the units of a duration, largest first. WriteDuration does not use weeks.
var units = []struct {
	name string
	size time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// ParseDuration parses a number with a unit, or a sum of them such as 1h30m. Zero needs no unit. The smallest unit is the millisecond, as
// in the database.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, errUnits
	}
	var sum time.Duration
	for rest := text; rest != "" || text == ""; {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		rest = rest[len(number):]
		unit := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		rest = rest[len(unit):]
		size := time.Duration(0)
		for _, u := range units {
			if u.name == unit {
				size = u.size
			}
		}
		if number == "" || size == 0 {
			return 0, errDuration
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > int64((math.MaxInt64-sum)/size) {
			return 0, errLong
		}
		sum += time.Duration(n) * size
	}
	return sum, nil
}

// WriteDuration formats a duration as ParseDuration parses it: 1h30m, 30d, 250ms.
func WriteDuration(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	text := ""
	for _, u := range units[1:] {
		if n := d / u.size; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + u.name
			d -= n * u.size
		}
	}
	return cmp.Or(text, "0")
}

// ParseTime parses a time in the future. A time without a zone is in zone. HH:MM is its next occurrence after now.
func ParseTime(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if t, ok := parseMoment(text, zone); ok {
		return t, nil
	}
	at, ok := parseClock(text, now, zone)
	if !ok {
		return time.Time{}, errTime
	}
	if t := at(0); t.After(now) {
		return t, nil
	}
	return at(1), nil
}

// ParseWhen parses a time in the past: a duration before now, a date or a time. HH:MM is its last occurrence before now.
func ParseWhen(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if d, err := ParseDuration(text); err == nil && text != "0" {
		return now.Add(-d), nil
	} else if errors.Is(err, errUnits) || errors.Is(err, errLong) {
		return time.Time{}, err
	}
	if t, ok := parseMoment(text, zone); ok {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return t, nil
	}
	at, ok := parseClock(text, now, zone)
	if !ok {
		return time.Time{}, errWhen
	}
	if t := at(0); !t.After(now) {
		return t, nil
	}
	return at(-1), nil
}

func parseMoment(text string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// parseClock parses HH:MM. The function at returns that time on the day that is days after today.
func parseClock(text string, now time.Time, zone *time.Location) (at func(days int) time.Time, ok bool) {
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return nil, false
	}
	today := now.In(zone)
	return func(days int) time.Time {
		return time.Date(today.Year(), today.Month(), today.Day()+days, clock.Hour(), clock.Minute(), 0, 0, zone)
	}, true
}

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// The values of options (cli.md 2). Errors continue a line that begins with the option and what was typed.

var (
	errUnits    = errors.New("needs a unit: 250ms, 10s, 5m, 2h, 1d, 1w")
	errDuration = errors.New("is no duration: 250ms, 10s, 5m, 2h, 1d, 1w, or a sum such as 1h30m")
	errLong     = errors.New("is too long")
	errName     = errors.New("is no NAME or NAME=VALUE")
	errSize     = errors.New("is no size: 65536, 64KiB, 1MiB, 1GiB")
	errTime     = errors.New("is no time: 15:04, 2026-01-31 15:04[:05], or 2026-01-31T15:04:05Z")
	errWhen     = errors.New("is no time: 90m (ago), 15:04, 2026-01-31, 2026-01-31 15:04[:05], or 2026-01-31T15:04:05Z")
)

// units are the units of a duration, in the order in which exact uses them. Weeks are read, not written.
var units = []struct {
	name string
	size time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// parseDuration reads a DUR: a number and a unit, or a sum of them. Zero needs no unit. Durations are whole milliseconds, as
// in the database.
func parseDuration(text string) (time.Duration, error) {
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

// parseSize reads a SIZE in bytes.
func parseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for shift, suffix := range map[int]string{10: "KiB", 20: "MiB", 30: "GiB"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = rest, 1<<shift
		}
	}
	if strings.Trim(number, "0123456789") != "" || number == "" {
		return 0, errSize
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errors.New("is too large")
	}
	return n * unit, nil
}

// parseTime reads a TIME: a moment, in zone unless it names one. HH:MM is the next.
func parseTime(text string, now time.Time, zone *time.Location) (time.Time, error) {
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

// parseWhen reads a WHEN: a DUR ago, or a moment of the past. HH:MM is the latest.
func parseWhen(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if d, err := parseDuration(text); err == nil && text != "0" {
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

// parseClock reads HH:MM. It returns when that is, some days from today.
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

// parseCodes reads CODES: exit codes and ranges of them.
func parseCodes(text string) (jobs.Codes, error) {
	if text == "" {
		return "", errors.New("is empty: 75,100-111")
	}
	return jobs.Codes(text), jobs.Codes(text).Validate()
}

// parseIDs reads IDS: one id, or several with commas between them.
func parseIDs(text string) ([]int64, error) {
	var ids []int64
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id < 1 || word[0] == '+' {
			return nil, errors.New("is no task id: 41, or 41,42")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func parseInt(text string, low int) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("is out of range")
	case err != nil:
		return 0, errors.New("is no whole number")
	case int(n) < low:
		return 0, fmt.Errorf("is too small: %d or more", low)
	}
	return int(n), nil
}

// parseQueue reads the name of a queue.
func parseQueue(text string) (string, error) {
	if jobs.ValidQueue(text) != nil {
		return "", errors.New("is no queue name: a letter or digit, then at most 99 of A-Z a-z 0-9 . _ -")
	}
	return text, nil
}

// parseLane reads the key of a lane.
func parseLane(text string) (string, error) {
	if (jobs.Target{Kind: jobs.LaneTarget, Name: text}).Validate() != nil {
		return "", errors.New("is no lane: 1 to 200 bytes of UTF-8 without control characters")
	}
	return text, nil
}

// parseJob reads the name of a job.
func parseJob(text string) (string, error) {
	if jobs.ValidJob(text) != nil {
		return "", errors.New("is no job name: a letter or digit, then at most 99 of A-Z a-z 0-9 . _ - : /")
	}
	return text, nil
}

// parseScheduleName reads the name of a schedule.
func parseScheduleName(text string) (string, error) {
	if jobs.ValidSchedule(text) != nil {
		return "", errors.New("is no schedule name: a letter or digit, then at most 99 of A-Z a-z 0-9 . _ -")
	}
	return text, nil
}

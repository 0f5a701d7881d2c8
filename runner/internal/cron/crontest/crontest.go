// Package crontest computes the ticks of cron expressions for tests. It does so
// in another way than package cron.
//
// It follows the definition of cron directly. For each minute of real time, it
// reads the clock of the zone and checks whether the expression matches that
// clock reading. It shares no code with package cron.
package crontest

import (
	"strconv"
	"strings"
	"time"
)

// Names is a parsed cron expression: for each of its five fields, the numbers
// that the field matches.
type Names struct {
	fields [5][61]bool
	either bool // whether both day fields restrict the day, so that one matching field is enough
}

// Parse parses the five fields of a valid expression.
func Parse(expr string) *Names {
	n := &Names{}
	f := strings.Fields(expr)
	for i, limits := range [][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}} {
		for value := limits[0]; value <= limits[1]; value++ {
			n.fields[i][value] = has(f[i], value, limits[0], limits[1])
		}
	}

	n.fields[4][0] = n.fields[4][0] || n.fields[4][7]
	n.either = f[2][0] != '*' && f[4][0] != '*'
	return n
}

// Hits reports whether a clock reading matches the expression.
func (n *Names) Hits(clock time.Time) bool {
	return n.fields[0][clock.Minute()] && n.fields[1][clock.Hour()] && n.HasDay(clock)
}

// HasDay reports whether the month, the day and the weekday of a time match the
// expression.
func (n *Names) HasDay(clock time.Time) bool {
	if !n.fields[3][clock.Month()] {
		return false
	}
	day, weekday := n.fields[2][clock.Day()], n.fields[4][clock.Weekday()]
	if n.either {
		return day || weekday
	}
	return day && weekday
}

func has(list string, value, low, high int) bool {
	for part := range strings.SplitSeq(list, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}

		from, to := low, high
		if high == 7 {
			to = 6 // * means 0 to 6, because 7 is only another number for Sunday
		}
		if span != "*" {
			a, b, isRange := strings.Cut(span, "-")
			from = ordinal(a)
			if to = from; isRange {
				to = ordinal(b)
			}
		}
		if from <= value && value <= to && (value-from)%step == 0 {
			return true
		}
	}
	return false
}

func ordinal(text string) int {
	const words = "jan feb mar apr may jun jul aug sep oct nov dec "
	const days = "sun mon tue wed thu fri sat "
	if i := strings.Index(words, strings.ToLower(text)+" "); i >= 0 {
		return i/4 + 1
	}
	if i := strings.Index(days, strings.ToLower(text)+" "); i >= 0 {
		return i / 4
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		panic(text)
	}

	return n
}

// Ticks lists the ticks in the interval [from, to). The interval must not begin
// in the hours right after a moment at which the clock of the zone is set back.
// Ticks does not know which times of day the clock had shown before the
// interval, so it cannot recognise repeated times then.
func Ticks(expr string, zone *time.Location, from, to time.Time) []time.Time {
	shows := func(at time.Time) time.Time {
		l := at.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	var list []time.Time
	names := Parse(expr)
	often := strings.Fields(expr)[1][0] == '*'
	furthest := shows(from.Add(-time.Minute)) // latest time that the clock has shown or skipped so far
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		now := shows(at)
		switch {
		case often:
			if names.Hits(now) {
				list = append(list, at)
			}
		default: // a repeated time is no second tick; a skipped time has its tick at the first minute after the skip
			hit := false
			for furthest.Before(now) {
				furthest = furthest.Add(time.Minute)
				hit = hit || names.Hits(furthest)
			}
			if hit {
				list = append(list, at)
			}
		}
	}

	return list
}

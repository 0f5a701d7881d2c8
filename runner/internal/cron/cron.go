// Package cron parses cron expressions and computes their ticks in a time zone.
//
// A cron expression names times on a wall clock. A tick is a moment in real
// time. When the clock of a zone jumps, these rules decide which moments are
// the ticks:
//
//   - A fixed hour (3, or 1-5, or 2,14) means times of day. If the clock skips
//     a time of day, its tick moves to the first minute that exists. If the
//     clock shows a time twice, only the first occurrence is a tick. So a job
//     at 02:30 runs once each day.
//   - An hour that begins with * means a regular interval, so ticks follow real
//     time. A skipped hour has no ticks, and a repeated hour has its ticks
//     twice.
//
// clock.go finds the next time on a clock without zones. next.go converts that
// time to a moment in a zone.
package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Expression is a parsed cron expression with its time zone.
type Expression struct {
	every  time.Duration // interval of @every; 0 for another expression
	atBoot bool          // whether the expression is @reboot, which names no times

	values    [5]uint64 // sets of values, one per field: bit n is set if the field allows n; Sunday is bit 0
	eitherDay bool      // whether one matching day field is enough, because neither day field begins with *
	often     bool      // whether ticks follow real time, because the hour begins with *
	zone      *time.Location
}

// The indexes of Expression.values.
const (
	minute = iota
	hour
	monthDay
	month
	weekday
)

// field describes one of the five fields.
type field struct {
	name      string // name of the field, for error messages
	low, high int
	words     []string // words for the values low, low+1, and so on; nil for a field without words
}

var fields = [5]field{
	{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// nicknames are the words that stand for five fields.
var nicknames = map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}

// Parse parses an expression and the name of a zone. Its errors are of kind
// jobs.ErrInvalid and contain the invalid part.
func Parse(text, zone string) (Expression, error) {
	location, err := parseZone(zone)
	if err != nil {
		return Expression{}, err
	}

	x := Expression{zone: location}
	words := strings.Fields(text)
	switch {
	case taskspec.AtBoot(text):
		x.atBoot = true
	case len(words) > 0 && words[0] == "@every":
		x.every, err = parseEvery(words[1:])
	default:
		err = x.parseFields(words)
	}

	if err != nil {
		return Expression{}, &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("cron %q: %v", text, err)}
	}

	return x, nil
}

// parseZone finds a time zone by its name. It refuses "Local", because that
// name means different zones on different machines.
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("unknown time zone %q", name),
			Hint: "a name such as Europe/Berlin, or UTC; Local is not allowed, because it differs between machines"}
	}
	return zone, nil
}

// parseEvery parses the words after @every.
func parseEvery(words []string) (time.Duration, error) {
	if len(words) != 1 {
		return 0, fmt.Errorf("@every needs one duration, as in @every 90s")
	}

	text := words[0]
	d, err := humanize.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("invalid duration %q; use 90s, 5m, 2h, 1d, 1w, or a sum such as 1d12h", text)
	case d < taskspec.MinEvery || d > taskspec.MaxDelay:
		return 0, fmt.Errorf("%s is out of range (1s to 10 years)", text)
	case d%time.Second != 0:
		return 0, fmt.Errorf("%s is not a number of whole seconds", text)
	}

	return d, nil
}

// parseFields parses five fields, or a nickname for them.
func (x *Expression) parseFields(words []string) (err error) {
	if text, ok := nicknames[strings.ToLower(strings.Join(words, " "))]; ok {
		words = strings.Fields(text)
	}

	switch name := strings.ToLower(strings.Join(words, " ")); {
	case nicknames["@"+name] != "" || name == "reboot" || strings.HasPrefix(name, "every "):
		return fmt.Errorf("did you mean @%s?", name)
	case len(words) > 0 && (strings.HasPrefix(words[0], "CRON_TZ=") || strings.HasPrefix(words[0], "TZ=")):
		_, zone, _ := strings.Cut(words[0], "=")
		return fmt.Errorf("a time zone is no part of the expression; set the zone %s apart", zone)
	case len(words) > 0 && words[0][0] == '@':
		return fmt.Errorf("unknown form (@hourly, @daily, @weekly, @monthly, @yearly, @every 90s, @reboot)")
	case len(words) != len(fields):
		return fmt.Errorf("%d fields; five are needed: minute, hour, day of month, month, day of week", len(words))
	}

	for i, f := range fields {
		if x.values[i], err = f.parse(words[i]); err != nil {
			return err
		}
	}

	x.often = words[hour][0] == '*'
	// As in cron, a day field that begins with * does not restrict the day. Any
	// other day field restricts the day, even if it lists every day.
	x.eitherDay = words[monthDay][0] != '*' && words[weekday][0] != '*'
	if _, ok := x.onClock(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return fmt.Errorf("no date matches")
	}

	return nil
}

// parse returns the set of the values that a field allows.
func (f field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, step, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		for value := low; value <= high; value += step {
			set |= 1 << value
		}
	}

	if f.high == 7 { // both 0 and 7 mean Sunday
		set |= set >> 7 & 1
	}

	return set, nil
}

// parsePart parses one part of a field. Commas separate the parts. A part is *,
// a value or a range, with or without a step.
func (f field) parsePart(part string) (low, high, step int, err error) {
	body, stepText, stepped := strings.Cut(part, "/")
	step = 1
	if stepped {
		step, err = strconv.Atoi(stepText)
		largest := f.largestStep()
		if err != nil || step < 1 || step > largest || stepText[0] == '+' {
			return 0, 0, 0, fmt.Errorf("%s %s: step %q is out of range (1-%d)%s", f.name, part, stepText, largest, f.stepHint(step))
		}
	}
	if body == "*" {
		if f.high == 7 { // the days are 0 to 6, because 7 is only another number for Sunday
			return f.low, 6, step, nil
		}
		return f.low, f.high, step, nil
	}

	from, to, isRange := strings.Cut(body, "-")
	if low, err = f.number(from); err != nil {
		return 0, 0, 0, err
	}

	high = low
	if isRange {
		if high, err = f.number(to); err != nil {
			return 0, 0, 0, err
		}
		if high == 0 && f.high == 7 && low > 0 { // as in FRI-SUN, where SUN means 7
			high = 7
		}
	}

	switch {
	case high < low:
		return 0, 0, 0, fmt.Errorf("%s %s runs backwards", f.name, part)
	case stepped && !isRange:
		return 0, 0, 0, fmt.Errorf("%s %s: a step needs a range, as in %d-%d/%d", f.name, part, low, f.high, step)
	}

	return low, high, step, nil
}

// largestStep returns the number of values of a field. A step of that length
// leaves only the first value, as in 0 */24 * * *. Cron takes longer steps the
// same way, but whoever writes */90 doesn't mean every hour.
func (f field) largestStep() int {
	if f.high == 7 { // both 0 and 7 mean Sunday
		return 7
	}
	return f.high - f.low + 1
}

// stepHint shows how to write a step that is longer than an hour or a day.
func (f field) stepHint(step int) string {
	unit := map[string]string{"minute": "m", "hour": "h"}[f.name]
	if step <= f.largestStep() || unit == "" {
		return ""
	}
	return fmt.Sprintf("; use @every %d%s", step, unit)
}

// number parses a value, written as a number or as a word.
func (f field) number(text string) (int, error) {
	if i := slices.Index(f.words, strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}

	n, err := strconv.Atoi(text)
	switch {
	case err != nil || strings.ContainsAny(text, "+-"):
		return 0, fmt.Errorf("invalid %s %q%s", f.name, text, f.hint())
	case n < f.low || n > f.high:
		return 0, fmt.Errorf("%s %d is out of range (%d-%d)", f.name, n, f.low, f.high)
	}

	return n, nil
}

// hint lists the valid values of a field, for an error message.
func (f field) hint() string {
	if f.words == nil {
		return fmt.Sprintf(" (%d-%d)", f.low, f.high)
	}
	return fmt.Sprintf(" (%d-%d, or %s)", f.low, f.high, strings.Join(f.words, " "))
}

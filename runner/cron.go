package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"example.com/runner/jobs"
)

// A cron expression names times on a wall clock; a tick is a moment. The library finds the next time on a clock without zone or
// daylight saving, which is where its answers are those of the oracle in cron_test.go; what a zone's clock makes of that time is
// decided here:
//
//   - A fixed hour (3, or 1-5, or 2,14) means times of day. One that the clock skips is moved to the first minute that exists,
//     one that the clock repeats is its first occurrence: a job at 02:30 runs once each day, whatever the clock does.
//   - An hour that begins with * means "every so often": ticks follow real time. A skipped hour has none, a repeated hour has
//     them twice.

// cron is a parsed expression.
type cron struct {
	expr  string         // five fields of numbers, for the library; empty: every
	every time.Duration  // between ticks
	often bool           // the hour begins with *
	zone  *time.Location //
}

// field is one of the five: its name for errors, its range, and its words.
type field struct {
	name      string
	low, high int
	words     []string // of low, low+1, …
}

var fields = []field{
	{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var forms = map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}

// parseCron reads an expression and a zone. Errors are of kind jobs.ErrInvalid and name what is wrong.
func parseCron(text, zone string) (cron, error) {
	location, err := parseZone(zone)
	if err != nil {
		return cron{}, err
	}
	wrong := func(format string, args ...any) (cron, error) {
		return cron{}, &jobs.Problem{Kind: jobs.ErrInvalid, What: fmt.Sprintf("cron %q: ", text) + fmt.Sprintf(format, args...)}
	}
	c := cron{zone: location}
	words := strings.Fields(text)
	if len(words) > 0 && words[0] == "@every" {
		if c.every, err = parseEvery(words[1:]); err != nil {
			return wrong("%v", err)
		}
		return c, nil
	}
	if form, ok := forms[strings.ToLower(strings.Join(words, " "))]; ok {
		words = strings.Fields(form)
	}
	switch {
	case len(words) > 0 && words[0] == "@reboot":
		return wrong("@reboot names no time; a service manager starts things with the machine")
	case len(words) > 0 && words[0][0] == '@':
		return wrong("unknown form (@hourly, @daily, @weekly, @monthly, @yearly, @every 90s)")
	case len(words) != len(fields):
		return wrong("%d fields; five are needed: minute, hour, day of month, month, day of week", len(words))
	}
	c.often = words[1][0] == '*'
	for i, f := range fields {
		if words[i], err = f.normal(words[i]); err != nil {
			return wrong("%v", err)
		}
	}
	c.expr = strings.Join(words, " ")
	if _, ok := c.clock(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return wrong("there is no such day")
	}
	return c, nil
}

// parseZone finds a time zone by its name. "Local" is refused: it would mean something else on another machine.
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, &jobs.Problem{Kind: jobs.ErrInvalid, What: fmt.Sprintf("zone %q is not known", name),
			Try: "a name such as Europe/Berlin, or UTC"}
	}
	return zone, nil
}

func parseEvery(words []string) (time.Duration, error) {
	if len(words) != 1 {
		return 0, fmt.Errorf("@every needs one duration, as in @every 90s")
	}
	text, unit := words[0], time.Duration(0)
	switch {
	case strings.HasSuffix(text, "d"):
		unit = 24 * time.Hour
	case strings.HasSuffix(text, "w"):
		unit = 7 * 24 * time.Hour
	}
	if n, err := strconv.Atoi(text[:len(text)-1]); err == nil && unit > 0 {
		if n < 1 || n > int(jobs.MaxDelay/unit) {
			return 0, fmt.Errorf("%s is out of range (1s to 10 years)", text)
		}
		return time.Duration(n) * unit, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration: 90s, 5m, 2h, 1d, 1w, or a sum such as 1h30m", text)
	case d < jobs.MinEvery || d > jobs.MaxDelay:
		return 0, fmt.Errorf("%s is out of range (1s to 10 years)", text)
	case d%time.Second != 0:
		return 0, fmt.Errorf("%s is not a number of whole seconds", text)
	}
	return d, nil
}

// normal checks a field and writes its words as numbers.
func (f field) normal(text string) (string, error) {
	var parts []string
	all := false
	for part := range strings.SplitSeq(text, ",") {
		body, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 || n > f.high || stepText[0] == '+' {
				return "", fmt.Errorf("%s %s: step %q is out of range (1-%d)", f.name, part, stepText, f.high)
			}
			step = n
		}
		if body == "*" {
			all = all || step == 1
			parts = append(parts, fmt.Sprintf("*/%d", step))
			continue
		}
		from, to, isRange := strings.Cut(body, "-")
		low, err := f.number(from)
		if err != nil {
			return "", err
		}
		high := low
		if isRange {
			if high, err = f.number(to); err != nil {
				return "", err
			}
			if high == 0 && f.high == 7 && low > 0 { // FRI-SUN
				high = 7
			}
		}
		switch {
		case high < low:
			return "", fmt.Errorf("%s %s runs backwards", f.name, part)
		case stepped && !isRange:
			return "", fmt.Errorf("%s %s: a step needs a range, as in %d-%d/%d", f.name, part, low, f.high, step)
		case step > 1:
			parts = append(parts, fmt.Sprintf("%d-%d/%d", low, high, step))
		case isRange:
			parts = append(parts, fmt.Sprintf("%d-%d", low, high))
		default:
			parts = append(parts, strconv.Itoa(low))
		}
	}
	if all { // as cron has it: a field that begins with * does not restrict, another one does, even if it lists every value
		if text[0] == '*' {
			return "*", nil
		}
		return fmt.Sprintf("%d-%d", f.low, f.high), nil
	}
	return strings.Join(parts, ","), nil
}

func (f field) number(text string) (int, error) {
	if i := slices.Index(f.words, strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || strings.ContainsAny(text, "+-"):
		return 0, fmt.Errorf("%s %q is no number%s", f.name, text, f.orWord())
	case n < f.low || n > f.high:
		return 0, fmt.Errorf("%s %d is out of range (%d-%d)", f.name, n, f.low, f.high)
	}
	return n, nil
}

func (f field) orWord() string {
	if f.words == nil {
		return fmt.Sprintf(" (%d-%d)", f.low, f.high)
	}
	return fmt.Sprintf(" (%d-%d, or %s)", f.low, f.high, strings.Join(f.words, " "))
}

// next returns the first tick after a moment; zero: there is none. Ticks of @every have no moments of their own: it is that
// moment and the interval.
func (c cron) next(after time.Time) time.Time {
	switch {
	case c.every > 0:
		return after.Truncate(time.Second).Add(c.every)
	case c.often:
		return c.nextOften(after)
	}
	wall := wallTime(after, c.zone)
	for {
		var ok bool
		if wall, ok = c.clock(wall); !ok {
			return time.Time{}
		}
		if tick := moment(wall, c.zone); tick.After(after) {
			return tick
		}
	}
}

// nextOften looks through the stretches in which the zone's clock runs evenly.
func (c cron) nextOften(after time.Time) time.Time {
	from := after
	for {
		local := from.In(c.zone)
		_, end := local.ZoneBounds()
		wall, ok := c.clock(wallTime(from, c.zone))
		if !ok {
			return time.Time{}
		}
		_, offset := local.Zone()
		tick := wall.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || tick.Before(end) {
			return tick
		}
		_, offset = end.Zone()
		if wall, ok = c.clock(wallTime(end, c.zone).Add(-time.Second)); ok {
			if tick = wall.Add(-time.Duration(offset) * time.Second); tick.Equal(end) {
				return tick
			}
		}
		from = end
	}
}

// clock returns the next time after a time on a clock that never jumps. Both are written as if they were UTC.
func (c cron) clock(wall time.Time) (time.Time, bool) {
	next, err := gronx.NextTickAfter(c.expr, wall, false)
	return next, err == nil
}

// wallTime is what a zone's clock shows at a moment, written as if it were UTC.
func wallTime(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moment is when a zone's clock shows a time first; if it never does, because the clock jumps over it, when it jumps.
func moment(wall time.Time, zone *time.Location) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	start, end := at.ZoneBounds()
	switch shown := wallTime(at, zone); {
	case shown.Before(wall): // before the jump
		return end.UTC()
	case shown.After(wall): // after it
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

// newest returns the newest ticks between two moments, both included: at most n, oldest first. first is a tick.
func (c cron) newest(first, from, to time.Time, n int) []time.Time {
	if c.every > 0 {
		last := to.Sub(first) / c.every
		var list []time.Time
		for i := max(last-time.Duration(n)+1, 0); i <= last; i++ {
			if tick := first.Add(i * c.every); !tick.Before(from) {
				list = append(list, tick)
			}
		}
		return list
	}
	for span := time.Hour; ; span *= 6 { // ticks may lie years back, or thousands in a day
		start := to.Add(-span)
		if span > 100*365*24*time.Hour || start.Before(from) {
			start = from
		}
		var list []time.Time
		for tick := c.next(start.Add(-time.Millisecond)); !tick.IsZero() && !tick.After(to); tick = c.next(tick) {
			list = append(list, tick)
		}
		if len(list) >= n || start.Equal(from) {
			return list[max(len(list)-n, 0):]
		}
	}
}

// ticks returns the ticks of a schedule that are due at now and get a task, oldest first, and the first tick after now.
func ticks(s jobs.Schedule, now time.Time) (due []time.Time, next time.Time, err error) {
	c, err := parseCron(s.Cron, s.Zone)
	if err != nil {
		return nil, time.Time{}, err
	}
	switch {
	case s.NextAt.IsZero():
		return nil, c.next(now), nil
	case s.NextAt.After(now):
		return nil, c.realign(s.NextAt, now), nil
	case c.every > 0:
		next = s.NextAt.Add((now.Sub(s.NextAt)/c.every + 1) * c.every)
	default:
		next = c.next(now)
	}
	due = s.CaughtUp(func(from time.Time, n int) []time.Time { return c.newest(s.NextAt, from, now, n) }, now)
	return due, next, nil
}

// realign returns the first tick after now, given the one that was computed some time ago and still lies ahead. They differ when
// the clock was set back, or the rules of the zone have changed; a tick that had its task has it, and is not repeated. Ticks of @every
// have no moments that could tell: theirs moves only if it is further away than a worker can have waited between the look at its clock
// and its turn to write, while others did the ticks before.
func (c cron) realign(at, now time.Time) time.Time {
	next := c.next(now)
	if c.every > 0 && at.Sub(next) < realignFrom {
		return at
	}
	return next
}

const realignFrom = time.Minute

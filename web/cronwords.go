package web

import (
	"fmt"
	"strconv"
	"strings"
)

var dayNames = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// cronWords returns a cron expression in words, or "" if the expression is complex.
func cronWords(cron string) string {
	if named, ok := map[string]string{"@hourly": "every hour", "@daily": "every day at 00:00", "@midnight": "every day at 00:00",
		"@weekly": "every Sunday at 00:00", "@monthly": "on day 1 of each month at 00:00", "@yearly": "on 1 January at 00:00",
		"@annually": "on 1 January at 00:00", "@reboot": "after each start of the machine"}[cron]; ok {
		return named
	}
	if every, ok := strings.CutPrefix(cron, "@every "); ok {
		return "every " + every
	}
	f := strings.Fields(cron)
	if len(f) != 5 || f[3] != "*" {
		return ""
	}
	minute, hour, day, weekday := f[0], f[1], f[2], f[4]
	daily := day == "*" && weekday == "*"
	switch m, isMinute := cronNumber(minute, 59); {
	case daily && hour == "*" && minute == "*":
		return "every minute"
	case daily && hour == "*" && strings.HasPrefix(minute, "*/"):
		return everyN(minute[2:], 60, "minutes")
	case !isMinute:
		return ""
	case daily && hour == "*":
		return fmt.Sprintf("every hour at minute %d", m)
	case daily && strings.HasPrefix(hour, "*/"):
		if words := everyN(hour[2:], 24, "hours"); words != "" {
			return fmt.Sprintf("%s at minute %d", words, m)
		}
	default:
		h, ok := cronNumber(hour, 23)
		days := onDays(day, weekday)
		if ok && days != "" {
			return fmt.Sprintf("%s at %02d:%02d", days, h, m)
		}
	}
	return ""
}

// everyN returns a text such as "every 5 minutes" for the number in the argument "text". It returns "" if the number does not divide the
// period.
func everyN(text string, period int, unit string) string {
	if n, ok := cronNumber(text, period); ok && n > 1 && period%n == 0 {
		return fmt.Sprintf("every %d %s", n, unit)
	}
	return ""
}

func cronNumber(text string, most int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && 0 <= n && n <= most
}

// onDays returns the days of a cron expression in words, such as "every Monday". It returns "" if the days are too complex. The parameters
// are the fields of the expression for the day of the month and the day of the week.
func onDays(day, weekday string) string {
	if n, ok := cronNumber(day, 31); ok && weekday == "*" {
		return fmt.Sprintf("on day %d of each month", n)
	}
	if day != "*" {
		return ""
	}
	if weekday == "*" {
		return "every day"
	}
	if from, to, isRange := strings.Cut(weekday, "-"); isRange {
		first, last := dayName(from), dayName(to)
		if first == "" || last == "" {
			return ""
		}
		return "every day from " + first + " to " + last
	}
	var names []string
	for part := range strings.SplitSeq(weekday, ",") {
		name := dayName(part)
		if name == "" {
			return ""
		}
		names = append(names, name)
	}
	return "every " + strings.Join(names, ", ")
}

// dayName returns the name of a weekday. The text is a number, or the first three letters of the name. For any other text, dayName returns
// "".
func dayName(text string) string {
	if n, ok := cronNumber(text, 7); ok {
		return dayNames[n]
	}
	for _, name := range dayNames {
		if strings.EqualFold(name[:3], text) {
			return name
		}
	}
	return ""
}

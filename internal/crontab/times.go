package crontab

import (
	"strings"

	"example.com/runner/internal/pattern"
)

// cutTimes splits an entry into its times and the rest. The times are five fields, or one word such as @daily.
func cutTimes(n int, line string) (fields []string, rest string, err *LineError) {
	words := 5
	if strings.HasPrefix(line, "@") {
		words = 1
	}
	rest = line
	for range words {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			return nil, "", lineError(n, "invalid entry %q; use five fields (or @daily and the like), then a command", line)
		}
		fields = append(fields, rest[:end])
		rest = strings.TrimLeft(rest[end:], " \t")
	}
	if fields[0] == "@every" { // cron itself does not know @every, but newer schedulers do
		every := firstWord(rest)
		return append(fields, every), strings.TrimLeft(rest[len(every):], " \t"), nil
	}
	return fields, rest, nil
}

// sixthField matches a word that can only be a time field of another scheduler:
// * or ?, a list of numbers, names such as MON-FRI, or the days L, FRIL and MON#2.
var sixthField = pattern.Lazy(`(?i)^([*?].*|[0-9][0-9,/*~#LW-]*|LW?|((sun|mon|tue|wed|thu|fri|sat|` +
	`jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(L|#[0-9])?([,-]|$))+)$`)

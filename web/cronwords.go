package web

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/runner/internal/pattern"
)

// cronForms are the cron expressions that have words. Minutes and hours have two
// digits, and days of the week have their names.
var cronForms = []struct {
	form  func() *regexp.Regexp
	words string
}{
	{pattern.Lazy(`^@every (.+)$`), "every $1"},
	{pattern.Lazy(`^\* \* \* \* \*$`), "every minute"},
	{pattern.Lazy(`^\*/(2|3|4|5|6|10|12|15|20|30) \* \* \* \*$`), "every $1 minutes"},
	{pattern.Lazy(`^(\d\d) \* \* \* \*$`), "every hour at :$1"},
	{pattern.Lazy(`^(\d\d) \*/(2|3|4|6|8|12) \* \* \*$`), "every $2 hours at :$1"},
	{pattern.Lazy(`^(\d\d) (\d\d) \* \* \*$`), "every day at $2:$1"},
	{pattern.Lazy(`^(\d\d) (\d\d) (\d+) \* \*$`), "on day $3 of each month at $2:$1"},
	{pattern.Lazy(`^(\d\d) (\d\d) \* \* ([A-Za-z, ]+)$`), "every $3 at $2:$1"},
	{pattern.Lazy(`^(\d\d) (\d\d) \* \* ([A-Za-z]+)-([A-Za-z]+)$`), "every day from $3 to $4 at $2:$1"},
}

// weekdays replaces numbers and short names by the names of the days.
var weekdays = sync.OnceValue(func() *strings.Replacer {
	pairs := []string{"7", "Sunday"}
	for day := time.Sunday; day <= time.Saturday; day++ {
		pairs = append(pairs, strconv.Itoa(int(day)), day.String(), strings.ToUpper(day.String()[:3]), day.String())
	}
	return strings.NewReplacer(pairs...)
})

// cronWords returns a cron expression in words, or "" if it is complex.
func cronWords(cron string) string {
	fields := strings.Fields(cron)
	for i, text := range fields {
		switch {
		case i < 2 && len(text) == 1 && text != "*":
			fields[i] = "0" + text
		case i == 4:
			fields[i] = strings.ReplaceAll(weekdays().Replace(strings.ToUpper(text)), ",", ", ")
		}
	}
	text := strings.Join(fields, " ")
	for _, f := range cronForms {
		if f.form().MatchString(text) {
			return f.form().ReplaceAllString(text, f.words)
		}
	}
	return ""
}

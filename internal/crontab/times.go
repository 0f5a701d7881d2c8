package crontab

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
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

// isField reports whether a word can only be a time field: * or */5, ?, a list
// of numbers such as 0,30 or 1-5, names such as MON-FRI, or the days L, FRIL and
// MON#2 of other schedulers.
func isField(word string) bool {
	if word == "" {
		return false
	}
	return word[0] == '*' || word[0] == '?' || isName(word) ||
		word[0] >= '0' && word[0] <= '9' && strings.Trim(word, "0123456789,-/*~#LW") == ""
}

// isName reports whether a word is a list or range of names of days and months,
// or L. A program may have such a name.
func isName(word string) bool {
	if word == "L" || word == "LW" {
		return true
	}
	const names = " sun mon tue wed thu fri sat jan feb mar apr may jun jul aug sep oct nov dec "
	for _, name := range strings.FieldsFunc(word, func(c rune) bool { return c == ',' || c == '-' }) {
		name, _, _ = strings.Cut(name, "#")
		if len(name) == 4 {
			name = strings.TrimSuffix(name, "L")
		}
		if len(name) != 3 || !strings.Contains(names, " "+strings.ToLower(name)+" ") {
			return false
		}
	}
	return len(word) >= 3
}

// Pick replaces each random range of cronie in time fields, such as 0~30 or ~,
// by one of its values. The same seed picks the same values again.
func Pick(fields []string, seed string) []string {
	if len(fields) != 5 {
		return fields
	}
	picked := slices.Clone(fields)
	for i, field := range fields {
		parts := strings.Split(field, ",")
		for j, part := range parts {
			parts[j] = pickPart(part, i, fmt.Sprintf("%s %d %d", seed, i, j))
		}
		picked[i] = strings.Join(parts, ",")
	}
	return picked
}

// bounds are the default ends of a random range, and its largest end, by field.
// By default, a random day of the month is one that every month has.
var bounds = [5]struct{ low, high, largest int }{{0, 59, 59}, {0, 23, 23}, {1, 28, 31}, {1, 12, 12}, {0, 6, 7}}

func pickPart(part string, field int, seed string) string {
	from, to, ok := strings.Cut(part, "~")
	low, high := bounds[field].low, bounds[field].high
	var err1, err2 error
	if from != "" {
		low, err1 = strconv.Atoi(from)
	}
	if to != "" {
		high, err2 = strconv.Atoi(to)
	}
	if !ok || err1 != nil || err2 != nil || low < bounds[field].low || high < low || high > bounds[field].largest {
		return part // if this isn't a range without ~ either, its parser reports it
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(seed))
	return strconv.Itoa(low + int(hash.Sum32()%uint32(high-low+1)))
}

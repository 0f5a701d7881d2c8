package crontab

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"example.com/runner/internal/pattern"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Rename names the schedules after their commands: the first of several lines
// with the command x is x, the others are x-2, x-3. The existing schedules in
// have keep their names: if one has the definition of a line, the line gets its
// name. So lines with the same command don't swap names when one of them goes.
func (t *Table) Rename(have []jobs.Schedule) {
	used := map[string]bool{}
	old := make([]string, len(t.Schedules))
	for i := range t.Schedules {
		for j := range have {
			if h := &have[j]; !used[h.Name] && ofFamily(h.Name, t.bases[i]) && len(taskspec.Differences(h, &t.Schedules[i])) == 0 {
				old[i], used[h.Name] = h.Name, true
				break
			}
		}
	}

	for i := range t.Schedules {
		name := old[i]
		for n := 1; name == ""; n++ {
			if next := nthName(t.bases[i], n); !used[next] {
				name, used[next] = next, true
			}
		}
		t.Schedules[i].Name = name
	}
}

func nthName(base string, n int) string {
	if n == 1 {
		return base
	}
	return base + "-" + strconv.Itoa(n)
}

// ofFamily reports whether a name is base, or base-2, base-3 and so on.
func ofFamily(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base)
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	return ok && (rest == "" || err == nil && name == nthName(base, n))
}

// These parts of a command don't belong to its name: "cd DIRECTORY &&" and
// assignments of variables, the directory of the program, and everything from
// the first word with an operator.
var (
	prelude   = pattern.Lazy(`^(cd \S+\s*(&&|;)\s*|[^\s='"/-][^\s='"/]*=[^\s'"]*\s+)*`)
	directory = pattern.Lazy(`^\S*/`)
	operator  = pattern.Lazy(`\s\S*[|;&<>](.|\n)*`)
	otherText = pattern.Lazy(`[^A-Za-z0-9._]+`)
)

// nameOf makes the name of a schedule from its command. For example, "cd /srv && ./backup.sh --full > log" becomes backup.sh-full.
func nameOf(prefix, script string) string {
	name := strings.TrimSpace(script)
	for _, part := range []*regexp.Regexp{prelude(), operator(), directory()} {
		name = part.ReplaceAllString(name, "")
	}
	name = strings.TrimLeft(otherText().ReplaceAllString(name, "-"), "._-")
	name = strings.TrimRight(name[:min(len(name), 40)], "._-")
	return prefix + cmp.Or(name, "command")
}

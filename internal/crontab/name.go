package crontab

import (
	"strconv"
	"strings"
	"unicode/utf8"

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

// Gone returns the names of those existing schedules that look like the import
// of a line with this prefix, although the table has no such line.
func (t *Table) Gone(have []jobs.Schedule, prefix string) (names []string) {
	kept := map[string]bool{}
	for i := range t.Schedules {
		kept[t.Schedules[i].Name] = true
	}
	for i := range have {
		argv, err := taskspec.Argv(have[i].Spec.Args)
		if err != nil || len(argv) != 3 || argv[1] != "-c" || have[i].Spec.Job != jobs.CommandJob {
			continue
		}
		if name := have[i].Name; !kept[name] && ofFamily(name, nameOf(prefix, argv[2])) {
			names = append(names, name)
		}
	}
	return names
}

// nameOf makes the name of a schedule from its command. For example, "cd /srv && ./backup.sh --full > log" becomes backup.sh-full.
func nameOf(prefix, script string) string {
	const most = 40
	words := strings.Fields(script)
	for len(words) > 1 { // skip "cd DIRECTORY" and assignments of variables
		switch first := words[0]; {
		case first == "cd" && len(words) > 3 && (words[2] == "&&" || words[2] == ";"):
			words = words[3:]
			continue
		case first == "cd" && len(words) > 2 && strings.HasSuffix(words[1], ";"):
			words = words[2:]
			continue
		case !strings.HasPrefix(first, "=") && strings.Contains(first, "=") && !strings.ContainsAny(first, "/'\"-"):
			words = words[1:]
			continue
		}
		break
	}
	name := ""
	for i, word := range words {
		if i > 0 && (strings.ContainsAny(word, "|;&<>") || len(name) >= most) {
			break
		}
		if i == 0 {
			word = word[strings.LastIndexByte(strings.TrimRight(word, "/"), '/')+1:]
		}
		for _, r := range word {
			if r >= utf8.RuneSelf || !strings.ContainsRune("._", r) && !isLetterOrDigit(r) {
				r = '-'
			}
			if r != '-' || name != "" && name[len(name)-1] != '-' {
				name += string(r)
			}
		}
		name = strings.TrimRight(name, "-") + "-"
	}
	name = prefix + strings.TrimLeft(name[:min(len(name), most)], "._-")
	if name = strings.TrimRight(name, "-."); name == strings.TrimRight(prefix, "-.") {
		name = prefix + "command"
	}
	return name
}

func isLetterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// Package crontab reads the crontab of a user or of the system as schedules.
package crontab

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Table is the content of a crontab.
type Table struct {
	Schedules []jobs.Schedule
	Lines     []int        // line numbers of the schedules, from 1
	Refused   []*LineError // the lines that cannot be imported
	MailLine  int          // number of the first line that sets MAILTO to an address; 0 if there is none
}

// Options describe the machine that the crontab is from, and how to name the schedules.
type Options struct {
	Zone   string // time zone of the machine; a line CRON_TZ in the crontab overrides it
	Home   string // absolute path of the directory in which commands run; a line HOME in the crontab overrides it
	Prefix string // prefix of the schedules' names
	System bool   // whether each entry names a user, as in /etc/crontab
	User   string // user whose entries are read, if System is set
}

// LineError is an error in one line of a file.
type LineError struct {
	Line    int // number of the line, from 1
	Err     error
	Setting bool // whether the line sets a variable, on which the entries below it depend
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the error without the line number.
func (e *LineError) Unwrap() error { return e.Err }

func lineError(line int, format string, args ...any) *LineError {
	return &LineError{Line: line, Err: &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf(format, args...)}}
}

// reader reads a crontab line by line. Its fields contain the settings from the lines that it has read. They apply to the entries that
// follow.
type reader struct {
	Options
	tab    Table
	shell  string
	jitter time.Duration
	env    map[string]string
	mailTo string         // where to mail the output of the next entries; empty for nowhere
	names  map[string]int // number of entries so far, by name
}

// Parse parses a crontab as cron does. A line that sets a variable applies to the entries below it. SHELL runs the commands (default
// /bin/sh), CRON_TZ is the time zone, and RANDOM_DELAY is a jitter in minutes. In an entry the first % ends the command; the text after it
// is the standard input, in which every further % is a newline. A % after a backslash is an ordinary character. MAILTO becomes a hook that
// mails the output. Parse does not check the times. It makes the name of each schedule from its command, so the same crontab always gives
// the same names.
func Parse(text string, o Options) Table {
	r := &reader{Options: o, shell: "/bin/sh", env: map[string]string{}, names: map[string]int{}}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		n++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.line(n, line); err != nil {
			r.tab.Refused = append(r.tab.Refused, err)
		}
	}
	return r.tab
}

// line reads a line that is neither empty nor a comment.
func (r *reader) line(n int, line string) *LineError {
	if !utf8.ValidString(line) || strings.IndexByte(line, 0) >= 0 {
		return lineError(n, "not UTF-8, or contains a NUL byte")
	}
	if name, value, ok := parseSetting(line); ok {
		err := r.setting(n, name, value)
		if err != nil {
			err.Setting = true
		}
		return err
	}
	return r.entry(n, line)
}

func (r *reader) setting(n int, name, value string) *LineError {
	switch name {
	case "SHELL":
		if value == "" || value[0] != '/' {
			return lineError(n, "SHELL %q is not an absolute path", value)
		}
		r.shell = value
	case "CRON_TZ":
		r.Zone = value
	case "HOME":
		if value == "" || value[0] != '/' {
			return lineError(n, "HOME %q is not an absolute path", value)
		}
		r.Home = value
	case "MAILTO":
		if strings.ContainsFunc(value, func(c rune) bool { return !isOfAddress(c) }) {
			return lineError(n, "invalid MAILTO %q; use addresses such as ann@example.com,bob", value)
		}
		if r.mailTo = value; value != "" && r.tab.MailLine == 0 {
			r.tab.MailLine = n
		}
	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > 24*60 {
			return lineError(n, "invalid RANDOM_DELAY %q; use minutes (0-1440)", value)
		}
		r.jitter = time.Duration(minutes) * time.Minute
	}
	if name != "MAILTO" && name != "MAILFROM" {
		r.env[name] = value
	}
	return nil
}

// isOfAddress reports whether a character is allowed in MAILTO. A shell script in a hook will contain the addresses, so they must not
// contain characters that are special in a shell.
func isOfAddress(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("@.,_+-=: ", c)
}

// mailHook returns a command that mails the output of a task. Like cron, it uses sendmail.
func mailHook(to string) string {
	return `{ printf 'To: ` + to + `\nSubject: %s: %s\n\n' "$(uname -n)" "$RUNNER_EVENT_SCHEDULE"; cat; } | ` +
		`PATH=$PATH:/usr/sbin:/usr/lib sendmail -t -i`
}

func (r *reader) entry(n int, line string) *LineError {
	when, rest, err := cutTimes(n, line)
	if err != nil {
		return err
	}
	if r.System {
		end := strings.IndexAny(rest+" ", " \t")
		user := rest[:end]
		if rest = strings.TrimLeft(rest[end:], " \t"); user != r.User {
			return lineError(n, "the entry is of user %q, not %q; import it as that user", user, r.User)
		}
	}
	script, input := cutCommand(rest)
	if strings.TrimSpace(script) == "" {
		return lineError(n, "missing command after %q", when)
	}
	if word, _, more := strings.Cut(script, " "); more && word == "root" && !r.System {
		return lineError(n, `"root" is not a command: this looks like a system crontab, with a column for the user; add --system`)
	}
	command := jobs.Command{Argv: []string{r.shell, "-c", script}, Path: r.shell, Dir: r.Home, Input: input}
	if len(r.env) > 0 {
		command.Env = maps.Clone(r.env)
	}
	name := nameOf(r.Prefix, script)
	if r.names[name]++; r.names[name] > 1 {
		name += "-" + strconv.Itoa(r.names[name])
	}
	if slices.ContainsFunc(r.tab.Schedules, func(s jobs.Schedule) bool { return s.Name == name }) {
		return lineError(n, "its name would be %s, which another line already has", name)
	}
	s := taskspec.WithDefaults(jobs.Schedule{Name: name, Cron: when, Zone: r.Zone, Jitter: r.jitter, Spec: command.With()})
	if r.mailTo != "" {
		s.Spec.OnOutput = mailHook(r.mailTo)
	}
	if err := taskspec.ValidateSchedule(&s); err != nil {
		return &LineError{Line: n, Err: err}
	}
	r.tab.Schedules, r.tab.Lines = append(r.tab.Schedules, s), append(r.tab.Lines, n)
	return nil
}

// parseSetting parses a line of the form NAME = value. The name and the value may be in quotes.
func parseSetting(line string) (name, value string, ok bool) {
	name, value, found := strings.Cut(line, "=")
	name = unquote(strings.TrimSpace(name))
	if !found || name == "" {
		return "", "", false
	}
	for i, r := range name {
		if !(r == '_' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || i > 0 && '0' <= r && r <= '9') {
			return "", "", false // this is no name of a variable, so the line is an entry whose command contains an equals sign
		}
	}
	return name, unquote(strings.TrimSpace(value)), true
}

func unquote(text string) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// cutTimes splits an entry into its times and the rest. The times are five fields, or one word such as @daily.
func cutTimes(n int, line string) (when, rest string, err *LineError) {
	words := 5
	if line[0] == '@' {
		words = 1
	}
	var fields []string
	rest = line
	for range words {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			return "", "", lineError(n, "invalid entry %q; use five fields (or @daily and the like), then a command", line)
		}
		fields = append(fields, rest[:end])
		rest = strings.TrimLeft(rest[end:], " \t")
	}
	when = strings.Join(fields, " ")
	if when == "@every" { // cron itself does not know @every, but newer schedulers do
		every, after, _ := strings.Cut(rest, " ")
		return when + " " + every, strings.TrimLeft(after, " \t"), nil
	}
	return when, rest, nil
}

// cutCommand splits the text after the times into the command and its standard input, as cron does. The input is nil if there is none.
func cutCommand(text string) (script string, input []byte) {
	var command []byte
	escaped := false
	for i := range len(text) {
		switch c := text[i]; {
		case escaped && c == '%': // replace the backslash before this % by the %
			command[len(command)-1] = c
			escaped = false
		case c == '%':
			return string(command), parseInput(text[i+1:])
		default:
			command = append(command, c)
			escaped = c == '\\' && !escaped
		}
	}
	return string(command), nil
}

// parseInput returns the standard input of a command. It converts % to a newline and \% to %, and ends the text with a newline.
func parseInput(text string) []byte {
	var input []byte
	escaped := false
	for i := range len(text) {
		switch c := text[i]; {
		case escaped && c == '%':
			input[len(input)-1] = c
			escaped = false
		case c == '%':
			input = append(input, '\n')
		default:
			input = append(input, c)
			escaped = c == '\\'
		}
	}
	if len(input) > 0 && input[len(input)-1] != '\n' {
		input = append(input, '\n')
	}
	return input
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

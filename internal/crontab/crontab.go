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

	"example.com/runner/internal/pattern"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Table is the content of a crontab.
type Table struct {
	Schedules []jobs.Schedule
	Lines     []int        // line numbers of the schedules, from 1
	Refused   []*LineError // the lines that cannot be imported

	bases []string // names of the schedules without the number that tells lines with the same command apart
}

// Options describe the machine that the crontab is from, and how to name the schedules.
type Options struct {
	Zone   string // time zone of the machine; a line CRON_TZ in the crontab overrides it
	Home   string // absolute path of the directory in which commands run; a line HOME in the crontab overrides it
	Prefix string // prefix of the schedules' names
	System bool   // whether each entry names a user, as in /etc/crontab
	User   string // user who imports the crontab
	Root   bool   // whether that user may import the entries of others

	// HomeOf returns the home directory of a user, or false if there's no such
	// user.
	HomeOf func(user string) (home string, ok bool)
}

// LineError is an error in one line of a file.
type LineError struct {
	Line int // number of the line, from 1
	Err  error
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
	mailTo string // where to mail the output of the next entries; empty for nowhere
}

// Parse parses a crontab as cron does. A line that sets a variable applies to the entries below it. SHELL runs the commands (default
// /bin/sh), CRON_TZ is the time zone, and RANDOM_DELAY is a jitter in minutes. In an entry the first % ends the command; the text after it
// is the standard input, in which every further % is a newline. A % after a backslash is an ordinary character. MAILTO becomes a hook that
// mails the output. Parse does not check the times. It makes the name of each schedule from its command, so the same crontab always gives
// the same names.
func Parse(text string, o Options) Table {
	r := &reader{Options: o, shell: "/bin/sh", env: map[string]string{}}
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
	r.tab.Rename(nil)
	return r.tab
}

// line reads a line that is neither empty nor a comment.
func (r *reader) line(n int, line string) *LineError {
	if !utf8.ValidString(line) || strings.IndexByte(line, 0) >= 0 {
		return lineError(n, "not UTF-8, or contains a NUL byte")
	}
	if name, value, ok := parseSetting(line); ok {
		return r.setting(n, name, value)
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
		r.mailTo = value
		return nil
	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > 24*60 {
			return lineError(n, "invalid RANDOM_DELAY %q; use minutes (0-1440)", value)
		}
		r.jitter = time.Duration(minutes) * time.Minute
	}
	r.env[name] = value
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
	fields, rest, err := cutTimes(n, strings.TrimPrefix(line, "-")) // in cronie and SUSE's cron, - means: not in the log
	if err != nil {
		return err
	}
	if word := firstWord(rest); sixthField().MatchString(word) {
		return lineError(n, "%q looks like a sixth time field; use minute, hour, day of month, month, day of week, then the command", word)
	}
	user := r.User
	if r.System {
		user = firstWord(rest)
		rest = strings.TrimLeft(rest[len(user):], " \t")
	}
	script, input := cutCommand(rest)
	if strings.TrimSpace(script) == "" {
		return lineError(n, "missing command after %q", strings.Join(fields, " "))
	}
	dir := r.Home
	if err := r.checkUser(n, user, script, &dir); err != nil {
		return err
	}
	if script[0] == '-' {
		return lineError(n, "the command begins with %q, an option that only other crons know", firstWord(script))
	}
	command := jobs.Command{Argv: []string{r.shell, "-c", script}, Path: r.shell, Dir: dir, Input: input}
	if len(r.env) > 0 {
		command.Env = maps.Clone(r.env)
	}
	base := nameOf(r.Prefix, script)
	s := taskspec.WithDefaults(jobs.Schedule{Name: base, Cron: strings.Join(fields, " "), Zone: r.Zone, Jitter: r.jitter,
		Spec: command.With()})
	if r.mailTo != "" {
		s.Spec.OnOutput = mailHook(r.mailTo)
	}
	if user != r.User {
		s.Spec.User = user
	}
	s.Spec.LeaveChildren = inBackground(script)
	if err := taskspec.ValidateSchedule(&s); err != nil {
		return &LineError{Line: n, Err: err}
	}
	r.tab.Schedules, r.tab.Lines, r.tab.bases = append(r.tab.Schedules, s), append(r.tab.Lines, n), append(r.tab.bases, base)
	return nil
}

// checkUser checks the user of an entry, and sets dir to the home of another user.
func (r *reader) checkUser(n int, user, script string, dir *string) *LineError {
	if !r.System {
		if firstWord(script) == "root" {
			return lineError(n, "\"root\" is not a command: this looks like a system crontab, with a column for the user; add --system")
		}
		return nil
	}
	if user == r.User {
		return nil
	}
	if !r.Root {
		return lineError(n, "the entry is of user %q, not %q; import it as root or as that user", user, r.User)
	}
	home, ok := r.HomeOf(user)
	if !ok {
		return lineError(n, "unknown user %q", user)
	}
	if _, set := r.env["HOME"]; !set {
		*dir = home
	}
	return nil
}

func firstWord(text string) string { return text[:strings.IndexAny(text+" ", " \t")] }

// ampersand matches a quoted text, an operator with & that runs nothing in the
// background, or the & that does (group 1).
var ampersand = pattern.Lazy(`'[^']*'|"(?:[^"\\]|\\.)*"|\\.|&&|&>|[<>|]&|(&)`)

// inBackground reports whether a script leaves a command in the background.
func inBackground(script string) bool {
	return slices.ContainsFunc(ampersand().FindAllStringSubmatch(script, -1), func(m []string) bool { return m[1] != "" })
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

package input

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Entry is a line that runs a command, or a line that can't be imported.
type Entry struct {
	Line     int // from 1
	Schedule jobs.Schedule
	Err      error // why the line can't be imported; nil if it can
}

// Crontab says which machine a crontab is from, and how to name the schedules.
type Crontab struct {
	Zone   string // time zone of the machine, unless the crontab sets CRON_TZ
	Home   string // absolute path of the commands' directory, unless the crontab sets HOME
	Prefix string // of the schedules' names
	System bool   // whether each entry names a user, as in /etc/crontab
	User   string // user who imports the crontab
	Root   bool   // whether that user may import the entries of others

	// HomeOf returns the home directory of a user, or false if there's no such
	// user.
	HomeOf func(user string) (home string, ok bool)
}

func invalid(format string, args ...any) error {
	return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf(format, args...)}
}

// crontabReader has the settings of the lines above an entry.
type crontabReader struct {
	Crontab
	shell  string
	jitter time.Duration
	env    map[string]string
	mailTo string          // where to mail the output; empty for nowhere
	names  map[string]bool // of the entries so far
}

// Parse parses a crontab as cron does. A line that sets a variable applies to
// the entries below it. SHELL runs the commands (default /bin/sh), CRON_TZ is
// the time zone, and RANDOM_DELAY is a jitter in minutes. MAILTO becomes a hook
// that mails the output. The same crontab always gives the same names, which
// come from the commands. Parse doesn't check the times.
func (c Crontab) Parse(text string) (list []Entry) {
	r := &crontabReader{Crontab: c, shell: "/bin/sh", env: map[string]string{}, names: map[string]bool{}}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}

		if set := setting().FindStringSubmatch(line); set == nil {
			s, err := r.entry(line)
			list = append(list, Entry{n, s, err})
		} else if err := r.set(set[1], unquote(set[2])); err != nil {
			list = append(list, Entry{Line: n, Err: err})
		}
	}

	return list
}

var (
	// setting matches NAME = value. The name may be in quotes, as the value.
	setting = humanize.Lazy(`^["']?([A-Za-z_]\w*)["']?\s*=\s*(.*)$`)

	// entry matches five fields or a word such as @daily, and a command. In
	// cronie and SUSE's cron, - means: not in the log.
	entry = humanize.Lazy(`^-?(@\S+|\S+(?:\s+\S+){4})\s+(.*)$`)
)

func unquote(text string) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

func (r *crontabReader) set(name, value string) error {
	switch name {
	case "SHELL", "HOME":
		if !strings.HasPrefix(value, "/") {
			return invalid("%s %q is not an absolute path", name, value)
		}
		if name == "SHELL" {
			r.shell = value
		} else {
			r.Home = value
		}
	case "CRON_TZ":
		r.Zone = value
	case "MAILTO":
		if strings.ContainsFunc(value, func(c rune) bool { return !isOfAddress(c) }) {
			return invalid("invalid MAILTO %q; use addresses such as ann@example.com,bob", value)
		}
		r.mailTo = value
		return nil
	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > 24*60 {
			return invalid("invalid RANDOM_DELAY %q; use minutes (0-1440)", value)
		}
		r.jitter = time.Duration(minutes) * time.Minute
	}

	r.env[name] = value
	return nil
}

// isOfAddress reports whether a character is allowed in MAILTO. The addresses
// go into a hook's shell script, so they can't have the shell's characters.
func isOfAddress(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("@.,_+-=: ", c)
}

// mailHook returns a command that mails a task's output with sendmail, as cron
// does.
func mailHook(to string) string {
	return `{ printf 'To: ` + to + `\nSubject: %s: %s\n\n' "$(uname -n)" "$RUNNER_EVENT_SCHEDULE"; cat; } | ` +
		`PATH=$PATH:/usr/sbin:/usr/lib sendmail -t -i`
}

// entry reads a line with a command. As with cron, processes that the command
// leaves behind live on.
func (r *crontabReader) entry(line string) (s jobs.Schedule, err error) {
	if !utf8.ValidString(line) || strings.IndexByte(line, 0) >= 0 {
		return s, invalid("not UTF-8, or contains a NUL byte")
	}

	parts := entry().FindStringSubmatch(line)
	if parts == nil {
		return s, invalid("invalid entry %q; use five fields (or @daily and the like), then a command", line)
	}

	times, rest := strings.Join(strings.Fields(parts[1]), " "), parts[2]
	user := r.User
	if r.System {
		user = firstWord(rest)
		rest = strings.TrimLeft(rest[len(user):], " \t")
	}

	script, input := cutInput(rest)
	dir, known := r.Home, true
	if user != r.User && r.Root {
		var home string
		if home, known = r.HomeOf(user); r.env["HOME"] == "" {
			dir = home
		}
	}

	switch word := firstWord(script); {
	case strings.TrimSpace(script) == "":
		return s, invalid("missing command after %q", times)
	case word == "root" && !r.System:
		return s, invalid("\"root\" is not a command: this looks like a system crontab, with a column for the user; " +
			"add --system")
	case user != r.User && !r.Root:
		return s, invalid("the entry is of user %q, not %q; import it as root or as that user", user, r.User)
	case !known:
		return s, invalid("unknown user %q", user)
	case word[0] == '*':
		return s, invalid("%q looks like a sixth time field; use minute, hour, day of month, month, day of week, "+
			"then the command", word)
	case word[0] == '-':
		return s, invalid("the command begins with %q, an option that only other crons know", word)
	}

	command := command.Command{Argv: []string{r.shell, "-c", script}, Path: r.shell, Dir: dir, Input: input}
	command.LeaveChildren = true
	if len(r.env) > 0 {
		command.Env = maps.Clone(r.env)
	}

	s = taskspec.WithDefaults(jobs.Schedule{
		Name:   nameOf(r.Prefix, script),
		Cron:   times,
		Zone:   r.Zone,
		Jitter: r.jitter,
		Spec:   jobs.Command(command),
	})
	if r.mailTo != "" {
		s.Spec.OnOutput = mailHook(r.mailTo)
	}
	if user != r.User {
		s.Spec.User = user
	}

	base := s.Name
	for n := 2; r.names[s.Name]; n++ {
		s.Name = base + "-" + strconv.Itoa(n)
	}

	r.names[s.Name] = true
	return s, taskspec.ValidateSchedule(&s)
}

func firstWord(text string) string { return text[:strings.IndexAny(text+" ", " \t")] }

// upToPercent matches up to the first % without a backslash. In \\% the second
// backslash belongs to the first one, and not to the %.
var upToPercent = humanize.Lazy(`^(\\.|[^%])*`)

// cutInput splits a command from its standard input, as cron does: the first %
// ends the command, each further one is a newline, and \% is a percent sign.
func cutInput(text string) (script string, input []byte) {
	script = upToPercent().FindString(text)
	rest := strings.TrimPrefix(text[len(script):], "%")
	script = strings.ReplaceAll(script, `\%`, "%")
	if rest == "" {
		return script, nil
	}
	rest = strings.NewReplacer(`\%`, "%", "%", "\n").Replace(rest)
	return script, []byte(strings.TrimSuffix(rest, "\n") + "\n")
}

// These parts of a command don't belong to its name: "cd DIRECTORY &&" and
// assignments of variables, the directory of the program, and everything from
// the first word with an operator.
var (
	prelude   = humanize.Lazy(`^(cd \S+\s*(&&|;)\s*|[^\s='"/-][^\s='"/]*=[^\s'"]*\s+)*`)
	directory = humanize.Lazy(`^\S*/`)
	operator  = humanize.Lazy(`\s\S*[|;&<>](.|\n)*`)
	otherText = humanize.Lazy(`[^A-Za-z0-9._]+`)
)

// nameOf names a schedule after its command: "cd /srv && ./backup.sh --full >
// log" becomes backup.sh-full.
func nameOf(prefix, script string) string {
	name := strings.TrimSpace(script)
	for _, part := range []*regexp.Regexp{prelude(), operator(), directory()} {
		name = part.ReplaceAllString(name, "")
	}
	name = strings.TrimLeft(otherText().ReplaceAllString(name, "-"), "._-")
	name = strings.TrimRight(name[:min(len(name), 40)], "._-")
	return prefix + cmp.Or(name, "command")
}

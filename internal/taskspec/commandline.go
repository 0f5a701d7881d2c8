package taskspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// SpecOf returns the Spec of a copy of task t, without its input. It has the
// due time of t only if t is scheduled.
func SpecOf(t *jobs.Task) jobs.Spec {
	s := jobs.Spec{Job: t.Job, Args: t.Args, Label: t.Label, Queue: t.Queue, Priority: t.Priority, DependsOn: t.DependsOn,
		DependsOnAny: t.DependsOnAny, Lane: t.Lane, UniqueKey: t.UniqueKey, MaxAttempts: t.MaxAttempts, MaxLosses: t.MaxLosses,
		Options: t.Options}
	s.Unique.Global = s.UniqueKey != "" && keyPrefix(&s) != ""
	if t.State == jobs.Scheduled {
		s.RunAt = t.RunAt
	}

	switch {
	case t.ExpiresAt.After(t.RunAt):
		s.ExpiresIn = min(t.ExpiresAt.Sub(t.RunAt), MaxDelay)
	case !t.ExpiresAt.IsZero():
		// a retry or a snooze has moved the due time past the expiry
		s.ExpiresIn = max(t.ExpiresAt.Sub(t.CreatedAt), time.Millisecond)
	}

	return s
}

// Command returns a command line that enqueues a copy of task t, whose input
// must be on stdin. Without reveal it has only the names of variables, whose
// values enqueue takes from the shell. It returns "" if t has no valid command.
func Command(t *jobs.Task, now time.Time, reveal bool) string {
	s := SpecOf(t)
	if !s.RunAt.After(now) {
		s.RunAt = time.Time{}
	}

	words := []string{"runner", "enqueue"}
	for _, o := range Options {
		words = append(words, flags(o, &s, reveal)...)
	}

	if t.InputBytes > 0 {
		words = append(words, "--input", "-")
	}
	if t.Job != command.Job {
		words = append(words, "--job", t.Job)
		if len(t.Args) > 0 {
			words = append(words, "--args", string(t.Args))
		}
		return shellescape.QuoteCommand(words)
	}

	argv, err := Argv(t.Args)
	if err != nil {
		return ""
	}
	if t.Path == "" {
		words = append(words, "--no-resolve")
	}
	if script := argv[len(argv)-1]; slices.Equal(argv, command.Shell(script).Argv) && t.Path == command.Shell(script).Path &&
		strings.TrimSpace(script) != "" && utf8.ValidString(script) {
		return shellescape.QuoteCommand(append(words, "--shell="+script))
	}

	return Quote(append(append(words, "--"), argv...))
}

// flags returns the words that set an option to its value in s, or nil if
// enqueue uses this value without a flag.
func flags(o *OptionInfo, s *jobs.Spec, reveal bool) []string {
	usual := o.IsDefault(s)
	switch o.Key {
	case "max_attempts":
		usual = usual || s.Job == command.Job && s.MaxAttempts == CommandAttempts
	case "backoff_max":
		// without --backoff-max, enqueue raises the maximum to the delay
		usual = usual && s.Backoff.Delay <= s.Backoff.Max
	}

	if o.Flag == "" || usual {
		return nil
	}

	field := o.Field(s)
	if o.Hint() == "" {
		return []string{"--" + o.Flag}
	}

	texts, ok := field.(*Texts)
	if !ok {
		return flag(o, field.String())
	}

	var words []string
	for _, name := range slices.Sorted(maps.Keys(*texts)) {
		if reveal || !o.Secret {
			name += "=" + (*texts)[name]
		}
		words = append(words, flag(o, name)...)
	}

	return words
}

func flag(o *OptionInfo, value string) []string {
	switch {
	case strings.HasPrefix(value, "-"):
		return []string{"--" + o.Flag + "=" + value}
	case o.Letter != "":
		return []string{"-" + o.Letter, value}
	}
	return []string{"--" + o.Flag, value}
}

// Describe returns a line that says what a task runs: a command, quoted for a
// shell, or the name of a job and its arguments. Escape its control characters
// before you print it on a terminal.
func Describe(t *jobs.Task) string {
	if t.Job == command.Job {
		if argv, err := Argv(t.Args); err == nil {
			return Quote(argv)
		}
	}
	return strings.TrimSpace(t.Job + " " + string(t.Args))
}

// Quote returns a command for a shell. A word with single quotes gets double
// quotes, which are easier to read, unless it has a character that is special
// there. A word that isn't UTF-8 becomes $'...', which bash, zsh and ksh
// understand.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		switch {
		case !utf8.ValidString(word):
			words[i] = quoteBytes(word)
		case strings.Contains(word, "'") && !strings.ContainsAny(word, "\"$`\\!"):
			words[i] = `"` + word + `"`
		default:
			words[i] = shellescape.Quote(word)
		}
	}

	return strings.Join(words, " ")
}

func quoteBytes(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\\' || c == '\'':
			b.WriteString(`\` + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}

	return b.String() + "'"
}

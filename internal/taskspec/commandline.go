package taskspec

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/jobs"
)

// SpecOf returns a Spec with which a user can enqueue a copy of task t. The Spec has the due time of t only if t is scheduled. It does
// not have the input of t.
func SpecOf(t *jobs.Task) jobs.Spec {
	s := jobs.Spec{Job: t.Job, Args: t.Args, Label: t.Label, Queue: t.Queue, Priority: t.Priority, After: t.After, AfterAny: t.AfterAny,
		Lane:      t.Lane,
		UniqueKey: t.UniqueKey, MaxAttempts: t.MaxAttempts, MaxLosses: t.MaxLosses, Options: t.Options}
	if t.State == jobs.Scheduled {
		s.RunAt = t.RunAt
	}
	switch {
	case t.ExpiresAt.After(t.RunAt):
		s.ExpiresIn = min(t.ExpiresAt.Sub(t.RunAt), MaxDelay)
	case !t.ExpiresAt.IsZero():
		// A retry or a snooze has moved the due time past the expiry. So ExpiresIn becomes the time from the creation to the expiry.
		s.ExpiresIn = max(t.ExpiresAt.Sub(t.CreatedAt), time.Millisecond)
	}
	return s
}

// Command returns a command line that enqueues a copy of task t. If reveal is false, the command line contains only the names of the
// variables in env; enqueue then takes their values from the shell. The user must pass the input of the task on stdin. Command returns ""
// if the arguments of t are not a valid command.
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
	if t.Job != jobs.CommandJob {
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
	if script := argv[len(argv)-1]; slices.Equal(argv, jobs.Shell(script).Argv) && t.Path == jobs.Shell(script).Path &&
		strings.TrimSpace(script) != "" && utf8.ValidString(script) {
		return shellescape.QuoteCommand(append(words, "--shell="+script))
	}
	return Quote(append(append(words, "--"), argv...))
}

// flags returns the words that set an option to its value in s. It returns nil if the option has no flag, or if enqueue uses the same value
// without the flag.
func flags(o *OptionInfo, s *jobs.Spec, reveal bool) []string {
	usual := o.IsDefault(s)
	switch o.Key {
	case "max_attempts":
		usual = usual || s.Job == jobs.CommandJob && s.MaxAttempts == CommandAttempts
	case "backoff_max":
		// Without --backoff-max, enqueue never uses a maximum below the delay. So a task whose maximum is below its delay needs the flag.
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

// flag returns an option and its value as words of a command line.
func flag(o *OptionInfo, value string) []string {
	switch {
	case strings.HasPrefix(value, "-"):
		return []string{"--" + o.Flag + "=" + value}
	case o.Letter != "":
		return []string{"-" + o.Letter, value}
	}
	return []string{"--" + o.Flag, value}
}

// placement lists the options that Chosen leaves out. The views of a task show these options in other places.
var placement = []string{"label", "queue", "priority", "lane", "unique_key", "after", "after_any", "run_at", "expires_in", "path", "cwd"}

// Chosen returns the options in s that do not have their defaults, as texts such as "max losses 2". It leaves out the options in placement.
// If reveal is false, it hides the values of the variables in env.
func Chosen(s *jobs.Spec, reveal bool) (list []string) {
	for _, o := range Options {
		if slices.Contains(placement, o.Key) || o.IsDefault(s) {
			continue
		}
		field, name := o.Field(s), strings.ReplaceAll(o.Key, "_", " ")
		switch value := field.(type) {
		case *Flag: // the value is true, because the default is false and the loop skips defaults
			list = append(list, name)
		case *Texts:
			list = append(list, name+" "+texts(*value, reveal || !o.Secret))
		default:
			list = append(list, name+" "+field.String())
		}
	}
	return list
}

// texts returns a map as KEY=TEXT KEY=TEXT. If reveal is false, it writes ••• in place of each text.
func texts(byKey map[string]string, reveal bool) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		text := "•••"
		if reveal {
			text = shellescape.Quote(byKey[key])
		}
		list = append(list, key+"="+text)
	}
	return strings.Join(list, " ")
}

// Package taskoption converts task options to text: to flags, to texts for the help, and to texts for people. The list of options is
// taskspec.OptionList.
package taskoption

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/tasktext"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
)

// Text returns the value of an option in a form that flags accept and people can read. The argument is a pointer: see
// taskspec.OptionInfo.Field.
func Text(field any) string {
	switch value := field.(type) {
	case *string:
		return *value
	case *jobs.Codes:
		return string(*value)
	case *int:
		return strconv.Itoa(*value)
	case *int64:
		return humanize.ExactSize(*value)
	case *time.Duration:
		return timetext.WriteDuration(*value)
	case *time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case *[]int64:
		var ids []string
		for _, id := range *value {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
		return strings.Join(ids, ",")
	case *map[string]string:
		return strings.Join(slices.Sorted(maps.Keys(*value)), " ")
	case *[]byte:
		return humanize.Size(int64(len(*value)))
	case *bool:
		return strconv.FormatBool(*value)
	}
	panic(fmt.Sprintf("taskoption: the type %T has no text", field))
}

// Default returns the default of an option for the help. It is empty if the help shows no default.
func Default(o *taskspec.OptionInfo) string {
	if o.Zero != "" {
		return o.Zero
	}
	switch value := o.Default().(type) {
	case *string, *int, *int64:
		return Text(value)
	case *time.Duration:
		if *value != 0 {
			return Text(value)
		}
	}
	return ""
}

// SpecOf returns a Spec that enqueues a task like t. The Spec has the due time of t only if t is scheduled. Its Input is empty.
func SpecOf(t *jobs.Task) jobs.Spec {
	s := jobs.Spec{Job: t.Job, Args: t.Args, Label: t.Label, Queue: t.Queue, Priority: t.Priority, After: t.After, AfterAny: t.AfterAny,
		Lane:      t.Lane,
		UniqueKey: t.UniqueKey, MaxAttempts: t.MaxAttempts, MaxLosses: t.MaxLosses, Options: t.Options}
	if t.State == jobs.Scheduled {
		s.RunAt = t.RunAt
	}
	switch {
	case t.ExpiresAt.After(t.RunAt):
		s.ExpiresIn = min(t.ExpiresAt.Sub(t.RunAt), taskspec.MaxDelay)
	case !t.ExpiresAt.IsZero(): // a retry or a snooze has changed the due time
		s.ExpiresIn = max(t.ExpiresAt.Sub(t.CreatedAt), time.Millisecond)
	}
	return s
}

// Command returns the command line that enqueues a task like t. If reveal is false, it has the names of the variables of env without their
// values, and enqueue takes the values from the shell. The command line reads the input of the task from stdin. Command returns "" if t has
// no valid argv.
func Command(t *jobs.Task, now time.Time, reveal bool) string {
	s := SpecOf(t)
	if !s.RunAt.After(now) {
		s.RunAt = time.Time{}
	}
	words := []string{"runner", "enqueue"}
	for i := range taskspec.OptionList() {
		words = append(words, flags(&taskspec.OptionList()[i], &s, reveal)...)
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
	argv, err := taskspec.Argv(t.Args)
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
	return tasktext.Quote(append(append(words, "--"), argv...))
}

// flags returns the flags that set an option to its value in s. It returns no flags if the value is the default.
func flags(o *taskspec.OptionInfo, s *jobs.Spec, reveal bool) []string {
	usual := o.IsDefault(s)
	switch o.Key {
	case "max_attempts":
		usual = usual || s.Job == jobs.CommandJob && s.MaxAttempts == taskspec.CommandAttempts
	case "backoff_max":
		usual = usual && s.Backoff.Delay <= s.Backoff.Max // if the default is less than the delay, enqueue raises it
	}
	if o.Flag == "" || usual {
		return nil
	}
	field := o.Field(s)
	if _, isBool := field.(*bool); isBool {
		return []string{"--" + o.Flag}
	}
	texts, ok := field.(*map[string]string)
	if !ok {
		return flag(o, Text(field))
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
func flag(o *taskspec.OptionInfo, value string) []string {
	switch {
	case strings.HasPrefix(value, "-"):
		return []string{"--" + o.Flag + "=" + value}
	case o.Letter != "":
		return []string{"-" + o.Letter, value}
	}
	return []string{"--" + o.Flag, value}
}

// placement lists the options that Chosen omits, because they have their own lines in the views of a task.
var placement = []string{"label", "queue", "priority", "lane", "unique_key", "after", "after_any", "run_at", "expires_in", "path", "cwd"}

// Chosen returns the options of s that differ from their defaults, each as text such as "max losses 2". It omits the options in placement.
// If reveal is false, it hides the values of env.
func Chosen(s *jobs.Spec, reveal bool) (list []string) {
	for i := range taskspec.OptionList() {
		o := &taskspec.OptionList()[i]
		if slices.Contains(placement, o.Key) || o.IsDefault(s) {
			continue
		}
		field, name := o.Field(s), strings.ReplaceAll(o.Key, "_", " ")
		switch value := field.(type) {
		case *bool: // it is true, because false is the default
			list = append(list, name)
		case *map[string]string:
			list = append(list, name+" "+texts(*value, reveal || !o.Secret))
		default:
			list = append(list, name+" "+Text(field))
		}
	}
	return list
}

// texts lists texts by key as KEY=TEXT, with ••• for a hidden text.
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

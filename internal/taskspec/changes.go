package taskspec

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// ScheduleChanges compares two definitions of a schedule, as Changes does for a
// task.
func ScheduleChanges(was, is *jobs.Schedule) (list []string) {
	for _, field := range []struct {
		name    string
		was, is any
	}{
		{"cron", was.Cron, is.Cron},
		{"zone", was.Zone, is.Zone},
		{"overlap", was.Overlap, is.Overlap},
		{"catch up", was.CatchUp, is.CatchUp},
		{"catch up window", was.CatchUpWindow, is.CatchUpWindow},
		{"jitter", was.Jitter, is.Jitter},
		{"alert after", was.AlertAfter, is.AlertAfter},
		{"on tick", was.OnTick, is.OnTick},
		{"job", was.Spec.Job, is.Spec.Job},
	} {
		if field.was != field.is {
			list = append(list, difference(field.name, fmt.Sprint(field.was), fmt.Sprint(field.is)))
		}
	}
	return append(list, Changes(&was.Spec, &is.Spec)...)
}

// Changes returns a text such as "priority 5 → 9" for each option that differs.
// The texts contain neither the input nor values of variables.
func Changes(was, is *jobs.Spec) (list []string) {
	if !bytes.Equal(was.Args, is.Args) {
		list = append(list, difference("command", argsText(was), argsText(is)))
	}

	for _, o := range Options {
		switch {
		case o.Same(was, is):
		case o.Key == "env":
			list = append(list, "env "+strings.Join(changedNames(was.Env, is.Env), " "))
		case o.Key == "input":
			list = append(list, "input "+o.Field(is).String())
		default:
			list = append(list, difference(o.name(), o.text(was, false), o.text(is, false)))
		}
	}

	return list
}

func difference(name, was, is string) string {
	return name + " " + cmp.Or(was, "–") + " → " + cmp.Or(is, "–")
}

// argsText returns the words of a command, or the arguments of a function, cut
// to fit into a line.
func argsText(s *jobs.Spec) string {
	text := string(s.Args)
	if argv, err := Argv(s.Args); err == nil && s.Job == command.Job {
		text = strings.Join(argv, " ")
	}
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "") + "…"
	}
	return humanize.Safe(text)
}

// changedNames returns the names of the variables whose values differ.
func changedNames(was, is map[string]string) []string {
	names := map[string]bool{}
	for name, value := range is {
		if old, ok := was[name]; !ok || old != value {
			names[name] = true
		}
	}

	for name := range was {
		if _, ok := is[name]; !ok {
			names[name] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// placement lists the options that Chosen leaves out: the views of a task show
// them in other places.
var placement = []string{"label", "queue", "priority", "lane", "unique_key", "after", "after_any", "run_at",
	"expires_in", "path", "cwd"}

// Chosen returns the options in s that don't have their defaults, as texts such
// as "max losses 2". Without reveal it hides the values of variables.
func Chosen(s *jobs.Spec, reveal bool) (list []string) {
	for _, o := range Options {
		if slices.Contains(placement, o.Key) || o.IsDefault(s) {
			continue
		}
		text := o.name()
		if _, isFlag := o.Field(s).(*Flag); !isFlag { // a flag that is chosen is on
			text += " " + o.text(s, reveal)
		}
		list = append(list, text)
	}
	return list
}

// name returns the name of the option in a sentence.
func (o *OptionInfo) name() string { return strings.ReplaceAll(o.Key, "_", " ") }

// text returns the value of the option, or its default, for people. Without
// reveal it writes ••• in place of secret values.
func (o *OptionInfo) text(s *jobs.Spec, reveal bool) string {
	if o.IsDefault(s) {
		return o.DefaultText()
	}

	byKey, isTexts := o.Field(s).(*Texts)
	if !isTexts {
		return o.Field(s).String()
	}

	var list []string
	for _, key := range slices.Sorted(maps.Keys(*byKey)) {
		value := "•••"
		if reveal || !o.Secret {
			value = shellescape.Quote((*byKey)[key])
		}
		list = append(list, key+"="+value)
	}

	return strings.Join(list, " ")
}

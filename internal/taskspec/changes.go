package taskspec

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// ScheduleChanges compares two definitions of a schedule, as Changes does for a task.
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

// Changes compares two definitions of a task. It returns a text such as "priority 5 → 9" for each option that differs. The texts do not
// contain the input and the values of variables.
func Changes(was, is *jobs.Spec) (list []string) {
	if !bytes.Equal(was.Args, is.Args) {
		list = append(list, difference("command", argsText(was), argsText(is)))
	}
	for _, o := range Options {
		if o.Same(was, is) {
			continue
		}
		name := strings.ReplaceAll(o.Key, "_", " ")
		switch o.Key {
		case "env":
			list = append(list, "env "+strings.Join(changedNames(was.Env, is.Env), " "))
		case "input":
			list = append(list, "input "+o.Field(is).String())
		default:
			list = append(list, difference(name, valueText(o, was), valueText(o, is)))
		}
	}
	return list
}

func difference(name, was, is string) string {
	return name + " " + cmp.Or(was, "–") + " → " + cmp.Or(is, "–")
}

// valueText returns the value of an option, or its default, as text.
func valueText(o *OptionInfo, s *jobs.Spec) string {
	if o.IsDefault(s) {
		return o.DefaultText()
	}
	if byKey, ok := o.Field(s).(*Texts); ok {
		return texts(*byKey, !o.Secret)
	}
	return o.Field(s).String()
}

// argsText returns the words of a command, or the arguments of a function. It cuts a long text to fit into a line.
func argsText(s *jobs.Spec) string {
	text := string(s.Args)
	if argv, err := Argv(s.Args); err == nil && s.Job == jobs.CommandJob {
		text = strings.Join(argv, " ")
	}
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return humanize.Safe(text)
}

// changedNames returns the names of the variables whose values differ.
func changedNames(was, is map[string]string) (names []string) {
	for name, value := range is {
		if old, ok := was[name]; !ok || old != value {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

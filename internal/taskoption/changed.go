package taskoption

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Changed compares two definitions of a task. It returns a text such as "priority 5 → 9" for each option that differs. The texts do not
// contain the input and the values of variables.
func Changed(was, is *jobs.Spec) (list []string) {
	if !bytes.Equal(was.Args, is.Args) {
		list = append(list, difference("command", argsText(was), argsText(is)))
	}
	for i := range taskspec.OptionList() {
		o := &taskspec.OptionList()[i]
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

func difference(name, was, is string) string { return name + " " + was + " → " + is }

// valueText returns the value of an option as text. If the option is not set, it returns the default or a dash.
func valueText(o *taskspec.OptionInfo, s *jobs.Spec) string {
	if o.IsDefault(s) {
		return cmp.Or(Default(o), "–")
	}
	if byKey, ok := o.Field(s).(*taskspec.Texts); ok {
		return texts(*byKey, !o.Secret)
	}
	return o.Field(s).String()
}

// argsText returns the words of a command, or the arguments of a function. It cuts a long text to fit into a line.
func argsText(s *jobs.Spec) string {
	text := string(s.Args)
	if argv, err := taskspec.Argv(s.Args); err == nil && s.Job == jobs.CommandJob {
		text = strings.Join(argv, " ")
	}
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return cmp.Or(humanize.Safe(text), "–")
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

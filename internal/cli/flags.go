package cli

import (
	"errors"
	"slices"
	"strings"

	"example.com/runner/internal/taskspec"
)

// These are the values of --unique-mode.
const (
	uniqueKeep       = "keep"
	uniqueReplace    = "replace"
	uniqueUntilStart = "until-start"
)

// The constant What is a heading of the help. It stands above the flags that say what a task runs.
const What = "What to run"

// Flags returns the flags that say what a task runs, and the flags of the task options. They are sorted by group, and within a group in the
// order of taskspec.Options.
func Flags(a *App) []Flag {
	list := Group(What,
		TextOption("shell", "SCRIPT", "run SCRIPT by /bin/sh -c (Windows: cmd /c)", ""),
		Scalar("job", "NAME", "call this registered function", "", ParseJob),
		TextOption("args", "JSON|@FILE|-", "arguments of the function", ""),
		BoolOption("no-resolve", "do not look up the command here; it exists only where the worker runs"),
	)
	for _, group := range []string{What, "When", "Order", "Retry", "Environment", "Resources", "Hooks"} {
		for _, o := range taskspec.Options {
			if o.Flag != "" && o.Group == group {
				list = append(list, Group(group, append([]Flag{taskFlag(a, o)}, flagAfter(o.Key)...)...)...)
			}
		}
	}
	return list
}

// OfOneTask returns the names of the flags that are valid for a single task, but not for the tasks of a schedule.
func OfOneTask() []string {
	names := []string{"unique-mode", "paused"}
	for _, o := range taskspec.Options {
		if o.OneTask && o.Flag != "" {
			names = append(names, o.Flag)
		}
	}
	return names
}

// flagAfter returns flags that are no task options themselves. The help shows them after the flag of the task option with the given key.
func flagAfter(key string) []Flag {
	switch key {
	case "unique_key":
		return []Flag{ChoiceOption("unique-mode",
			"with --unique: keep the old task, replace it unless it has started, or keep it until it starts",
			uniqueKeep, uniqueKeep, uniqueReplace, uniqueUntilStart).Default("keep")}
	case "run_at":
		return []Flag{BoolOption("paused", "start only after runner resume")}
	case "max_losses":
		return []Flag{BoolOption("at-most-once", "start the task at most once, as with --max-attempts 1 and --max-losses 0")}
	case "env":
		return []Flag{BoolOption("inherit-env", "copy all variables of this shell")}
	}
	return nil
}

// taskFlag returns the flag of a task option. The help shows the default of the option, unless the default is "none".
func taskFlag(a *App, o *taskspec.OptionInfo) *Option {
	f := newFlag(a, o)
	if text := o.DefaultText(); text != "none" {
		f.Default(text)
	}
	return f
}

// newFlag returns a flag whose texts the option's kind can parse, except of the options in fromCaller. Read them with Get[[]string].
func newFlag(a *App, o *taskspec.OptionInfo) *Option {
	names := strings.TrimSpace(o.Flag + " " + o.Letter)
	switch {
	case o.Key == "env":
		return Repeated(names, o.Hint(), o.Help, One(parseVariable))
	case slices.Contains(fromCaller, o.Key):
		return TextOption(names, o.Hint(), o.Help, "")
	}
	return Repeated(names, o.Hint(), o.Help, One(func(text string) (string, error) {
		if text == "" && slices.Contains(filled, o.Key) {
			return "", errors.New("empty")
		}
		value := o.New()
		if err := value.Parse(text, a.Now()); err != nil {
			return "", err
		}
		return text, o.Check(value)
	}))
}

// parseVariable parses the value of -e: NAME or NAME=VALUE.
func parseVariable(text string) (string, error) {
	if text == "" || text[0] == '=' {
		return "", ErrName
	}
	return text, nil
}

// fromCaller lists the options whose values depend on the calling process.
var fromCaller = []string{"cwd", "env", "env_file", "input"}

// filled lists the options that the command line refuses with an empty text. It
// often comes from a variable that isn't set, and would mean "any".
var filled = []string{"retry_on", "unique_states"}

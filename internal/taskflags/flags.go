// Package taskflags makes flags from the list of task options in package taskspec, and a task from the values of these flags. The commands
// enqueue, run, edit and "schedule add" share this package.
package taskflags

import (
	"errors"
	"slices"
	"strings"

	"example.com/runner/internal/cli"
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
// order of taskspec.OptionList.
func Flags(a *cli.App) []cli.Flag {
	list := cli.Group(What,
		cli.TextOption("shell", "SCRIPT", "run SCRIPT by /bin/sh -c (Windows: cmd /c)", ""),
		cli.Scalar("job", "NAME", "call this registered function", "", cli.ParseJob),
		cli.TextOption("args", "JSON|@FILE|-", "arguments of the function", ""),
		cli.BoolOption("no-resolve", "do not look up the command here; it exists only where the worker runs"),
	)
	for _, group := range []string{What, "When", "Order", "Retry", "Environment", "Resources", "Hooks"} {
		for i := range taskspec.OptionList() {
			if o := &taskspec.OptionList()[i]; o.Flag != "" && o.Group == group {
				list = append(list, cli.Group(group, append([]cli.Flag{taskFlag(a, o)}, flagAfter(o.Key)...)...)...)
			}
		}
	}
	return list
}

// OfOneTask returns the names of the flags that are valid for a single task, but not for the tasks of a schedule.
func OfOneTask() []string {
	names := []string{"unique-mode", "paused"}
	for _, o := range taskspec.OptionList() {
		if o.OneTask && o.Flag != "" {
			names = append(names, o.Flag)
		}
	}
	return names
}

// flagAfter returns flags that are no task options themselves. The help shows them after the flag of the task option with the given key.
func flagAfter(key string) []cli.Flag {
	switch key {
	case "unique_key":
		return []cli.Flag{cli.ChoiceOption("unique-mode",
			"with --unique: keep the old task, replace it unless it has started, or keep it until it starts",
			uniqueKeep, uniqueKeep, uniqueReplace, uniqueUntilStart).Default("keep")}
	case "run_at":
		return []cli.Flag{cli.BoolOption("paused", "start only after runner resume")}
	case "max_losses":
		return []cli.Flag{cli.BoolOption("at-most-once", "start the task at most once, as with --max-attempts 1 and --max-losses 0")}
	case "env":
		return []cli.Flag{cli.BoolOption("inherit-env", "copy all variables of this shell")}
	}
	return nil
}

// taskFlag returns the flag of a task option. The help shows the default of the option, unless the default is "none".
func taskFlag(a *cli.App, o *taskspec.OptionInfo) *cli.Option {
	f := newFlag(a, o)
	if text := o.DefaultText(); text != "none" {
		f.Default(text)
	}
	return f
}

// newFlag returns a flag whose texts the option's kind can parse, except of the options in fromCaller. Read them with Get[[]string].
func newFlag(a *cli.App, o *taskspec.OptionInfo) *cli.Option {
	names := strings.TrimSpace(o.Flag + " " + o.Letter)
	switch {
	case o.Key == "env":
		return cli.Repeated(names, o.Hint(), o.Help, cli.One(parseVariable))
	case slices.Contains(fromCaller, o.Key):
		return cli.TextOption(names, o.Hint(), o.Help, "")
	}
	return cli.Repeated(names, o.Hint(), o.Help, cli.One(func(text string) (string, error) {
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
		return "", cli.ErrName
	}
	return text, nil
}

// fromCaller lists the options whose values depend on the calling process.
var fromCaller = []string{"cwd", "env", "env_file", "input"}

// filled lists the options that the command line refuses with an empty text. It
// often comes from a variable that isn't set, and would mean "any".
var filled = []string{"retry_on", "unique_states"}

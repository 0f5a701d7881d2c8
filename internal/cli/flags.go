package cli

import (
	"errors"
	"slices"
	"strings"

	"example.com/runner/internal/taskspec"
)

// TaskFlags are the flags that say what a task runs, and those of the task
// options.
type TaskFlags struct {
	Shell      string
	job, args  string
	noResolve  bool
	paused     bool
	atMostOnce bool
	inheritEnv bool
	uniqueMode string

	// texts has what was typed for the task options, by their keys.
	texts map[string]*[]string

	// These are flags of runner enqueue. The task then has the defaults of all
	// lines.
	Batch string
	Each  bool
	Wait  bool
}

// These are the values of --unique-mode.
const (
	uniqueKeep       = "keep"
	uniqueReplace    = "replace"
	uniqueUntilStart = "until-start"
)

// What is the heading of the flags that say what a task runs.
const What = "What to run"

// Options returns the flags, sorted by group, and within a group in the order
// of taskspec.Options.
func (t *TaskFlags) Options(a *App) []Flag {
	t.texts = map[string]*[]string{}
	list := Group(What,
		Text(&t.Shell, "shell", "SCRIPT", "run SCRIPT by /bin/sh -c (Windows: cmd /c)"),
		Value(&t.job, "job", "NAME", "call this registered function", ParseJob),
		Text(&t.args, "args", "JSON|@FILE|-", "arguments of the function"),
		Bool(&t.noResolve, "no-resolve", "do not look up the command here; it exists only where the worker runs"),
	)
	for _, group := range []string{What, "When", "Order", "Retry", "Environment", "Resources", "Hooks"} {
		for _, o := range taskspec.Options {
			if o.Flag != "" && o.Group == group {
				list = append(list, Group(group, append([]Flag{t.option(a, o)}, t.after(o.Key)...)...)...)
			}
		}
	}

	return list
}

// OfOneTask returns the names of the flags that are valid for a single task,
// but not for the tasks of a schedule.
func OfOneTask() []string {
	names := []string{"unique-mode", "paused"}
	for _, o := range taskspec.Options {
		if o.OneTask && o.Flag != "" {
			names = append(names, o.Flag)
		}
	}
	return names
}

// after returns flags that are no task options. The help shows them below the
// flag of the task option with this key.
func (t *TaskFlags) after(key string) []Flag {
	switch key {
	case "unique_key":
		return []Flag{Choice(&t.uniqueMode, "unique-mode",
			"with --unique: keep the old task, replace it unless it has started, or keep it until it starts",
			uniqueKeep, uniqueReplace, uniqueUntilStart).Default("keep")}
	case "run_at":
		return []Flag{Bool(&t.paused, "paused", "start only after runner resume")}
	case "max_losses":
		return []Flag{Bool(&t.atMostOnce, "at-most-once",
			"start the task at most once, as with --max-attempts 1 and --max-losses 0")}
	case "env":
		return []Flag{Bool(&t.inheritEnv, "inherit-env", "copy all variables of this shell")}
	}
	return nil
}

// option returns the flag of a task option. The option's kind can parse its
// texts, except of the options in fromCaller. The help shows the default unless
// that is "none".
func (t *TaskFlags) option(a *App, o *taskspec.OptionInfo) *Option {
	parse := func(text string) (string, error) {
		if text == "" && slices.Contains(filled, o.Key) {
			return "", errors.New("empty")
		}
		value := o.New()
		if err := value.Parse(text, a.Now()); err != nil {
			return "", err
		}
		return text, o.Check(value)
	}
	if slices.Contains(fromCaller, o.Key) {
		parse = func(text string) (string, error) { return text, nil }
	}
	if o.Key == "env" {
		parse = parseVariable
	}

	texts := new([]string)
	t.texts[o.Key] = texts
	f := Values(texts, strings.TrimSpace(o.Flag+" "+o.Letter), o.Hint(), o.Help, One(parse))
	if text := o.DefaultText(); text != "none" {
		f.Default(text)
	}

	return f
}

// typed returns what was typed for a task option.
func (t *TaskFlags) typed(key string) []string {
	if texts := t.texts[key]; texts != nil {
		return *texts
	}
	return nil
}

// last returns the last text that was typed for a task option, or an empty one.
func (t *TaskFlags) last(key string) string {
	if texts := t.typed(key); len(texts) > 0 {
		return texts[len(texts)-1]
	}
	return ""
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

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Read makes a task from the flags. words are the words of the command, without
// the name that "schedule add" requires. Read also returns the directory and
// the PATH in which it looked for the program.
func (t *TaskFlags) Read(c *Context, a *App, words []string) (s jobs.Spec, caller ops.Invocation, err error) {
	if err = t.validate(c, words); err != nil {
		return s, caller, err
	}
	if caller, err = t.caller(c, a); err != nil {
		return s, caller, err
	}

	list, err := t.changes(a, caller)
	if err != nil {
		return s, caller, err
	}

	list = append(list, func(s *jobs.Spec) {
		s.Unique.Replace, s.Unique.UntilStart = t.uniqueMode == uniqueReplace, t.uniqueMode == uniqueUntilStart
		s.Paused = t.paused
	})
	s = jobs.NewSpec(t.job, list...)
	switch {
	case t.Batch != "" || t.Each:
		s.Cwd = cmp.Or(s.Cwd, caller.Dir)
		return s, caller, validateDefaults(s)
	case t.job != "": // without --max-attempts, the function's own maximum applies
		s.Args, err = t.functionArgs(c, a)
	default:
		err = t.setCommand(c, caller, words, &s)
	}

	if err == nil {
		err = taskspec.Validate(&s)
	}

	return s, caller, err
}

// validateDefaults checks the defaults for each line of --batch or --each with
// a line that says nothing else.
func validateDefaults(s jobs.Spec) error {
	s.Job, s.Args = command.Job, json.RawMessage(`["true"]`)
	s.UniqueKey = cmp.Or(s.UniqueKey, "key")
	return taskspec.Validate(&s)
}

// caller returns the directory and the PATH of this process. If several hosts
// share the database, the command may run elsewhere.
func (t *TaskFlags) caller(c *Context, a *App) (ops.Invocation, error) {
	caller, err := ops.Current(a.Getenv)
	caller.Elsewhere = t.noResolve
	if !c.IsSet("no-resolve") {
		caller.Elsewhere = a.SharedByHosts()
	}
	return caller, err
}

// Example returns the beginning of an example for the current command: enqueue,
// run or "schedule add".
func Example(c *Context) string {
	if c.Command.Name == "add" {
		return "runner schedule add NAME --cron '0 3 * * *'"
	}
	return "runner " + c.Command.Name
}

// FirstSet returns the first of these flags that the user gave, or an empty
// string.
func FirstSet(c *Context, names ...string) string {
	for _, name := range names {
		if c.IsSet(name) {
			return name
		}
	}
	return ""
}

// validate returns an error if flags contradict each other or the command is
// missing.
func (t *TaskFlags) validate(c *Context, words []string) error {
	return cmp.Or(t.checkPairs(c), t.checkForm(c, words), checkWords(words, script(c)), t.checkTexts(c))
}

// checkForm requires exactly one of these: a command, --shell, --job or
// --batch. With --batch, --job is the default of the lines.
func (t *TaskFlags) checkForm(c *Context, words []string) error {
	var forms []string
	if len(words) > 0 {
		forms = append(forms, "a command")
	}

	for _, name := range []string{"shell", "job", "batch"} {
		if c.IsSet(name) && (name != "job" || !c.IsSet("batch")) {
			forms = append(forms, "--"+name)
		}
	}

	switch {
	case len(forms) == 0 && c.Command.Name == "add":
		return ui.Usage("missing command").Hint("%s -- backup.sh --full", Example(c))
	case len(forms) == 0:
		return ui.Usage("missing command").Hint("%s -- backup.sh --full      %s", Example(c), script(c))
	case len(forms) > 1 && len(words) > 0:
		return ui.Usage("%s cannot be used with a command; the command begins at %q", forms[1], words[0])
	case len(forms) > 1:
		return ui.Exclusive(forms[0], forms[1])
	}

	return nil
}

// checkWords checks the words of a command, if there are any.
func checkWords(words []string, script string) error {
	switch {
	case len(words) > 0 && words[0] == "":
		return ui.Usage("the command is empty")
	case len(words) == 1 && words[0] == "-":
		return ui.Usage("- is no command").Hint("%s", script)
	case usesColons(words):
		i := slices.Index(words, ":::")
		return ui.Usage("::: is an argument of GNU parallel; runner would pass it to %s", words[0]).
			Hint("printf '%%s\\n' %s | runner enqueue --each -- %s",
				shellescape.QuoteCommand(words[i+1:]), strings.ReplaceAll(shellescape.QuoteCommand(words[:i]), "'{}'", "{}"))
	}
	return nil
}

// checkTexts checks flags that are empty, or make no task, and that only one of
// them reads stdin.
func (t *TaskFlags) checkTexts(c *Context) error {
	stdin := 0
	for _, source := range []string{t.last("input"), t.args, t.Batch} {
		if source == "-" {
			stdin++
		}
	}

	switch {
	case c.IsSet("shell") && strings.TrimSpace(t.Shell) == "":
		return ui.Usage("--shell is empty")
	case c.IsSet("batch") && t.Batch == "":
		return ui.Usage("--batch is empty").Hint("--batch FILE, or --batch - for stdin")
	case c.IsSet("args") && (t.job == "" || t.Batch != ""):
		return ui.Usage("--args requires --job").Hint("%s --job email.send --args '{}'", Example(c))
	case t.job == command.Job && t.Batch == "":
		return ui.Usage("the job name %q is reserved", command.Job).Hint("%s -- backup.sh --full", Example(c))
	case stdin > 1 || stdin == 1 && t.Each:
		return ui.Usage("only one of --input, --args, --batch and --each can read stdin")
	}

	return nil
}

// checkPairs checks flags that need or exclude others.
func (t *TaskFlags) checkPairs(c *Context) error {
	keyless := FirstSet(c, "unique-for", "unique-states", "unique-mode", "unique-global")
	commandOnly := FirstSet(c, "cwd", "env", "inherit-env", "env-file", "input", "no-resolve", "retry-on")
	eachless := FirstSet(c, "job", "batch")
	switch {
	case t.Each && eachless != "":
		return ui.Exclusive("--each", "--"+eachless)
	case t.Each && c.IsSet("unique"):
		return ui.Exclusive("--each", "--unique").Because("all tasks would have the same key").
			Hint("--batch, with a unique_key in each line")
	case keyless != "" && t.Batch == "" && FirstSet(c, "unique", "unique-args") == "":
		return ui.Usage("--%s requires --unique or --unique-args", keyless).Hint("--unique KEY")
	case c.IsSet("in") && c.IsSet("at"):
		return ui.Exclusive("--in", "--at")
	case commandOnly != "" && t.job != "" && t.Batch == "":
		return ui.Exclusive("--"+commandOnly, "--job").Because("--" + commandOnly + " applies to commands, not to functions")
	case t.atMostOnce && FirstSet(c, "max-attempts", "max-losses") != "":
		return ui.Usage("--at-most-once means --max-attempts 1 --max-losses 0; leave these out")
	}

	return nil
}

// script returns a command line that runs the script on stdin.
func script(c *Context) string {
	input := " --input -"
	if c.Command.Name == "run" { // its command reads stdin anyway
		input = ""
	}
	return Example(c) + input + " -- sh -s <SCRIPT"
}

// usesColons reports whether a command uses ::: as GNU parallel does, without
// being parallel.
func usesColons(words []string) bool {
	return slices.Index(words, ":::") > 0 &&
		!slices.ContainsFunc(words, func(word string) bool {
			return strings.HasSuffix(word, "parallel") || strings.HasSuffix(word, "sem")
		})
}

// setCommand sets the command of a task: the words, or the script of --shell.
func (t *TaskFlags) setCommand(c *Context, caller ops.Invocation, words []string, s *jobs.Spec) error {
	typed := command.Command{Argv: words}
	if t.Shell != "" {
		typed = command.Shell(t.Shell)
	}

	s.Cwd = cmp.Or(s.Cwd, caller.Dir)
	path, f := resolve(caller, typed, words, s.Cwd)
	if f != nil {
		// run and enqueue --wait exit with 126 or 127 if the program can't
		// start, as the task itself would. Other commands exit with 1.
		if f.Code == "start" && !t.Wait && c.Command.Name != "run" {
			f.Exit = 1
		}
		return f
	}

	made := jobs.Command(typed)
	s.Job, s.Args, s.Path, s.Err = made.Job, made.Args, path, made.Err
	s.MaxAttempts = cmp.Or(s.MaxAttempts, made.MaxAttempts)
	return nil
}

// assignment matches NAME=VALUE, which only a shell takes for a variable.
var assignment = humanize.Lazy(`^[A-Za-z_][A-Za-z0-9_]*=`)

// builtins are commands that exist only within a shell.
var builtins = []string{"cd", "source", ".", "export", "ulimit", "umask", "eval", "exec", "set", "alias", "trap",
	"shopt", "for", "if", "while"}

// resolve returns the path of a command's program. The typed words are empty
// with --shell.
func resolve(caller ops.Invocation, typed command.Command, words []string, dir string) (string, *ui.Error) {
	if caller.Elsewhere {
		return typed.Path, nil
	}

	name := typed.Argv[0]
	path, f := caller.Find(name, dir)
	switch {
	case f == nil:
		return path, nil
	case len(words) == 1 && strings.ContainsAny(name, " |&;<>*$") && f.Exit == ops.StatusNotFound:
		return "", ui.Usage("%q is one word and not the name of a program; no shell splits it", name).
			Hint("--shell %s", shellescape.Quote(name))
	case f.Exit == ops.StatusNotFound && len(words) > 1 && assignment().MatchString(name):
		return "", ui.Usage("%q is no program: only a shell sets variables this way", name).
			Hint("-e %s -- %s", shellescape.Quote(name), shellescape.QuoteCommand(words[1:]))
	case f.Exit == ops.StatusNotFound && slices.Contains(builtins, name):
		return "", ui.Usage("%s is a command of the shell, not a program", name).
			Hint("--shell %s", shellescape.Quote(shellescape.QuoteCommand(words)))
	case len(words) == 0 && f.Exit == ops.StatusNotFound:
		return "", ops.StartFailure(f.Exit, "shell %s not found", name)
	}

	return "", f
}

// functionArgs returns the value of --args as compact JSON.
func (t *TaskFlags) functionArgs(c *Context, a *App) (json.RawMessage, error) {
	if !c.IsSet("args") {
		return nil, nil
	}

	text, err := ops.ReadArgs(t.args, a.Stdin)
	if err != nil {
		return nil, err
	}

	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, ui.Usage("--args: invalid JSON: %v", err)
	}
	return compact.Bytes(), nil
}

package taskflags

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Task is a task that the flags describe.
type Task struct {
	Spec      jobs.Spec             // the task; with --batch or --each, the defaults for each line
	Words     []string              // words of the command; empty with --shell, --job or --batch
	NoResolve bool                  // if true, only the worker looks for the program of the command
	Caller    invocation.Invocation // directory and PATH of this process
}

// Read makes a task from the flags. The parameter "words" contains the words of the command. It does not contain the name that "schedule
// add" requires.
func Read(c *cli.Context, a *cli.App, words []string) (Task, error) {
	t := Task{Words: words, NoResolve: noResolve(c, a)}
	if err := t.validate(c); err != nil {
		return t, err
	}
	var err error
	if t.Caller, err = invocation.Current(a.Getenv); err != nil {
		return t, err
	}
	command := jobs.Command{EnvFile: t.Caller.Absolute(cli.Get[string](c, "env-file"))}
	if command.Dir, err = t.Caller.WorkDir(cli.Get[string](c, "cwd"), t.NoResolve); err != nil {
		return t, err
	}
	if command.Env, err = invocation.Environment(cli.Get[[]string](c, "env"), cli.Get[bool](c, "inherit-env")); err != nil {
		return t, err
	}
	if c.IsSet("input") {
		if command.Input, err = invocation.ReadSource("input", cli.Get[string](c, "input"), taskspec.MaxInput, a.Stdin); err != nil {
			return t, err
		}
	}
	switch {
	case c.IsSet("batch"):
		t.Spec = command.With(options(c, a))
		t.Spec.Job, t.Spec.Args = cli.Get[string](c, "job"), nil
		return t, nil
	case c.Bool("each"):
		command.Argv = []string{"true"} // placeholder, because Validate needs a command and the lines are read later
		t.Spec = command.With(options(c, a))
		err = taskspec.Validate(&t.Spec)
		t.Spec.Args = nil
		return t, err
	case c.IsSet("job"):
		err = t.function(c, a)
	case c.IsSet("shell"):
		shell := jobs.Shell(cli.Get[string](c, "shell"))
		command.Argv, command.Path = shell.Argv, shell.Path
		err = t.command(c, a, command)
	default:
		command.Argv = t.Words
		err = t.command(c, a, command)
	}
	if err == nil {
		err = taskspec.Validate(&t.Spec)
	}
	return t, err
}

// noResolve reports whether only the worker looks for the program of the command. That is the default if several hosts share the database,
// because the worker may run on another host.
func noResolve(c *cli.Context, a *cli.App) bool {
	if c.IsSet("no-resolve") {
		return cli.Get[bool](c, "no-resolve")
	}
	return a.SharedByHosts(c)
}

// Example returns the beginning of an example for the current command: enqueue, run or "schedule add".
func Example(c *cli.Context) string {
	if c.Command.Name == "add" {
		return "runner schedule add NAME --cron '0 3 * * *'"
	}
	return "runner " + c.Command.Name
}

// firstSet returns the first of these flags that the user gave, or an empty string if the user gave none.
func firstSet(c *cli.Context, names ...string) string {
	for _, name := range names {
		if c.IsSet(name) {
			return name
		}
	}
	return ""
}

// isAbove reports whether the number of an option is above limit. Of an option
// that was typed twice, the last number counts.
func isAbove(c *cli.Context, name string, limit int) bool {
	texts := cli.Get[[]string](c, name)
	if len(texts) == 0 {
		return false
	}
	n, err := strconv.Atoi(texts[len(texts)-1])
	return err == nil && n > limit
}

// validate returns an error if flags contradict each other or the command is missing.
func (t *Task) validate(c *cli.Context) error {
	if err := t.validateForm(c); err != nil {
		return err
	}
	commandOnly := firstSet(c, "cwd", "env", "inherit-env", "env-file", "input", "no-resolve", "retry-on")
	keyless := firstSet(c, "unique-for", "unique-states", "unique-mode")
	switch {
	case keyless != "" && !c.IsSet("batch") && firstSet(c, "unique", "unique-args") == "":
		return failure.Usage("--%s requires --unique or --unique-args", keyless).Hint("--unique KEY")
	case c.IsSet("in") && c.IsSet("at"):
		return failure.Exclusive("--in", "--at")
	case c.IsSet("job") && !c.IsSet("batch") && commandOnly != "":
		return failure.Exclusive("--"+commandOnly, "--job").Because("--" + commandOnly + " applies to commands, not to functions")
	case cli.Get[bool](c, "at-most-once") && (isAbove(c, "max-attempts", 1) || isAbove(c, "max-losses", 0)):
		return failure.Usage("--at-most-once means --max-attempts 1 --max-losses 0; higher values contradict it")
	}
	return nil
}

// validateForm returns an error unless the command line has exactly one of these: a command, --shell, --job or --batch. With --each it must
// have a command or --shell.
func (t *Task) validateForm(c *cli.Context) error {
	batch := c.IsSet("batch") // always false for "schedule add", which does not have this flag
	var forms []string
	if len(t.Words) > 0 {
		forms = append(forms, "a command")
	}
	for _, name := range []string{"shell", "job", "batch"} {
		if c.IsSet(name) && (name != "job" || !batch) {
			forms = append(forms, "--"+name)
		}
	}
	stdin := 0
	for _, name := range []string{"input", "args", "batch"} {
		if c.String(name) == "-" {
			stdin++
		}
	}
	if c.Bool("each") {
		if !c.IsSet("arg-file") || c.String("arg-file") == "-" {
			stdin++
		}
		if other := firstSet(c, "job", "batch", "unique"); other != "" {
			f := failure.Exclusive("--each", "--"+other)
			if other == "unique" {
				f.Because("all tasks would have the same key").Hint("--batch, with a unique_key in each line")
			}
			return f
		}
	}
	switch {
	case len(forms) == 0 && c.Command.Name == "add":
		return failure.Usage("missing command").Hint("%s -- backup.sh --full", Example(c))
	case len(forms) == 0:
		return failure.Usage("missing command").Hint("%s -- backup.sh --full      %s", Example(c), script(c))
	case len(t.Words) == 1 && t.Words[0] == "-":
		return failure.Usage("- is no command").Hint("%s", script(c))
	case usesColons(t.Words):
		i := slices.Index(t.Words, ":::")
		return failure.Usage("::: is an argument of GNU parallel; runner would pass it to %s", t.Words[0]).
			Hint("printf '%%s\\n' %s | runner enqueue --each -- %s",
				shellescape.QuoteCommand(t.Words[i+1:]), strings.ReplaceAll(shellescape.QuoteCommand(t.Words[:i]), "'{}'", "{}"))
	case len(forms) > 1 && forms[0] == "a command":
		return failure.Usage("%s cannot be used with a command; the command begins at %q", forms[1], t.Words[0])
	case len(forms) > 1:
		return failure.Exclusive(forms[0], forms[1])
	case len(t.Words) > 0 && t.Words[0] == "":
		return failure.Usage("the command is empty")
	case c.IsSet("shell") && strings.TrimSpace(cli.Get[string](c, "shell")) == "":
		return failure.Usage("--shell is empty")
	case batch && c.String("batch") == "":
		return failure.Usage("--batch is empty").Hint("--batch FILE, or --batch - for stdin")
	case c.IsSet("args") && (!c.IsSet("job") || batch):
		return failure.Usage("--args requires --job").Hint("%s --job email.send --args '{}'", Example(c))
	case cli.Get[string](c, "job") == jobs.CommandJob && !batch:
		return failure.Usage("the job name %q is reserved", jobs.CommandJob).Hint("%s -- backup.sh --full", Example(c))
	case stdin > 1:
		return failure.Usage("only one of --input, --args, --batch and --each can read stdin")
	}
	return nil
}

// script returns a command line that runs the script on stdin.
func script(c *cli.Context) string {
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
		!slices.ContainsFunc(words, func(word string) bool { return strings.HasSuffix(word, "parallel") || strings.HasSuffix(word, "sem") })
}

// command makes the Spec of a command. It looks for the program, unless --no-resolve is given.
func (t *Task) command(c *cli.Context, a *cli.App, command jobs.Command) error {
	if !t.NoResolve {
		if f := t.resolve(&command); f != nil {
			// The commands run and "enqueue --wait" exit with 126 or 127 if the program cannot start, as the task itself would. Other
			// commands exit with 1.
			if f.Code == "start" && !c.Bool("wait") && c.Command.Name != "run" {
				f.Exit = 1
			}
			return f
		}
	}
	t.Spec = command.With(options(c, a))
	if t.Spec.MaxAttempts == 0 {
		t.Spec.MaxAttempts = taskspec.CommandAttempts
	}
	return nil
}

// assignment matches NAME=VALUE, which only a shell takes for a variable.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// builtins are commands that exist only within a shell.
var builtins = []string{"cd", "source", ".", "export", "ulimit", "umask", "eval", "exec", "set", "alias", "trap", "shopt", "for",
	"if", "while"}

// resolve sets the path of the command's program.
func (t *Task) resolve(command *jobs.Command) *failure.Error {
	name := command.Argv[0]
	path, f := t.Caller.Find(name, command.Dir)
	switch {
	case f == nil:
		command.Path = path
		return nil
	case len(t.Words) == 1 && strings.ContainsAny(name, " |&;<>*$") && f.Exit == invocation.StatusNotFound:
		return failure.Usage("%q is one word and not the name of a program; no shell splits it", name).
			Hint("--shell %s", shellescape.Quote(name))
	case f.Exit == invocation.StatusNotFound && len(t.Words) > 1 && assignment.MatchString(name):
		return failure.Usage("%q is no program: only a shell sets variables this way", name).
			Hint("-e %s -- %s", shellescape.Quote(name), shellescape.QuoteCommand(t.Words[1:]))
	case f.Exit == invocation.StatusNotFound && slices.Contains(builtins, name):
		return failure.Usage("%s is a command of the shell, not a program", name).
			Hint("--shell %s", shellescape.Quote(shellescape.QuoteCommand(t.Words)))
	case len(t.Words) == 0 && f.Exit == invocation.StatusNotFound:
		return invocation.StartFailure(f.Exit, "shell %s not found", name)
	}
	return f
}

// function makes the Spec of a task that calls a registered function. Without --max-attempts, the function's own maximum applies.
func (t *Task) function(c *cli.Context, a *cli.App) error {
	var args json.RawMessage
	if c.IsSet("args") {
		text, err := invocation.ReadArgs(cli.Get[string](c, "args"), a.Stdin)
		if err != nil {
			return err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			return failure.Usage("--args: invalid JSON: %v", err)
		}
		args = compact.Bytes()
	}
	t.Spec = jobs.Define[json.RawMessage](cli.Get[string](c, "job")).With(nil, options(c, a))
	t.Spec.Args = args
	return nil
}

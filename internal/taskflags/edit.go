package taskflags

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// notEdited lists the flags of a new task that the command edit does not have. A task always keeps its job and its dependencies.
var notEdited = []string{"job", "after", "after-any", "unique-mode", "unique-args", "inherit-env", "paused"}

// EditFlags returns the flags of the command edit: one for each task option that can change, --unset and --first.
func EditFlags(a *cli.App) []cli.Flag {
	var names []string
	for _, o := range taskspec.OptionList() {
		if canUnset(&o) {
			names = append(names, o.Flag)
		}
	}
	unset := cli.Repeated("unset", "OPTION,...", "set these options to their defaults", func(text string) ([]string, error) {
		list := strings.Split(text, ",")
		for i, name := range list {
			list[i] = strings.TrimPrefix(strings.TrimSpace(name), "--")
			if !slices.Contains(names, list[i]) {
				return nil, fmt.Errorf("unknown option %q (%s)", list[i], strings.Join(names, ", "))
			}
		}
		return list, nil
	})
	first := cli.BoolOption("first", "start before all pending tasks of the queue; several tasks start in the given order")
	return append(append(cli.Without(Flags(a), notEdited...), cli.Group(What, unset)...), cli.Group("Order", first)...)
}

// canUnset reports whether --unset accepts the option.
func canUnset(o *taskspec.OptionInfo) bool {
	return o.Flag != "" && o.Flag != "in" && o.Flag != "at" && !slices.Contains(notEdited, o.Flag)
}

// Edit holds the changes that the command edit makes.
type Edit struct {
	changes   []func(*jobs.Spec)
	words     []string        // words of the new command; nil to keep the command
	path      string          // path of the shell if --shell gives the new command
	args      json.RawMessage // new arguments of a function; nil to keep them
	noResolve bool
	caller    invocation.Invocation
}

// ReadEdit reads the changes from the flags. The parameter "words" contains the words of the new command, or is nil if there is none.
func ReadEdit(c *cli.Context, a *cli.App, words []string) (e Edit, err error) {
	e.words, e.noResolve = words, noResolve(c, a)
	if e.caller, err = invocation.Current(a.Getenv); err != nil {
		return e, err
	}
	switch {
	case c.IsSet("in") && c.IsSet("at"):
		return e, failure.Exclusive("--in", "--at")
	case c.IsSet("shell") && words != nil:
		return e, failure.Exclusive("--shell", "a command")
	case c.IsSet("args") && (c.IsSet("shell") || words != nil):
		return e, failure.Exclusive("--args", "a command")
	case c.IsSet("shell"):
		shell := jobs.Shell(cli.Get[string](c, "shell"))
		e.words, e.path = shell.Argv, shell.Path
	case c.IsSet("args"):
		if e.args, err = invocation.ReadArgs(cli.Get[string](c, "args"), a.Stdin); err != nil {
			return e, err
		}
	}
	if err := e.readOptions(c, a); err != nil {
		return e, err
	}
	if len(e.changes) == 0 && e.words == nil && e.args == nil {
		return e, failure.Usage("edit needs an option or a command").
			Hint("runner edit 1042 --priority 9      runner edit 1042 -- backup.sh")
	}
	return e, nil
}

// readOptions reads the flags of the task options, and --unset.
func (e *Edit) readOptions(c *cli.Context, a *cli.App) error {
	for i := range taskspec.OptionList() {
		o := &taskspec.OptionList()[i]
		if slices.Contains(cli.Get[[]string](c, "unset"), o.Flag) && canUnset(o) {
			e.changes = append(e.changes, func(s *jobs.Spec) { unset(o, s) })
		}
		if o.Flag == "" || !c.IsSet(o.Flag) || slices.Contains(notEdited, o.Flag) {
			continue
		}
		change, err := e.option(c, a, o)
		if err != nil {
			return err
		}
		e.changes = append(e.changes, change)
	}
	if cli.Get[bool](c, "at-most-once") {
		e.changes = append(e.changes, jobs.AtMostOnce())
	}
	return nil
}

// unset sets an option to its default.
func unset(o *taskspec.OptionInfo, s *jobs.Spec) {
	o.Set(s, o.New())
	switch {
	case o.Key == "input":
		s.Input = []byte{} // not nil, because nil would mean that the task keeps its input
	case o.Key == "max_attempts" && s.Job == jobs.CommandJob:
		s.MaxAttempts = taskspec.CommandAttempts
	}
}

// option returns a function that sets one task option of a Spec to the value from the flags.
func (e *Edit) option(c *cli.Context, a *cli.App, o *taskspec.OptionInfo) (func(*jobs.Spec), error) {
	switch o.Key {
	case "cwd":
		dir, err := e.caller.WorkDir(cli.Get[string](c, "cwd"), e.noResolve)
		return func(s *jobs.Spec) { s.Cwd = dir }, err
	case "env":
		env, err := invocation.Environment(cli.Get[[]string](c, "env"), false)
		return func(s *jobs.Spec) {
			all := maps.Clone(s.Env)
			if all == nil {
				all = map[string]string{}
			}
			maps.Copy(all, env)
			s.Env = all
		}, err
	case "metadata":
		return func(s *jobs.Spec) {
			var added jobs.Spec
			setOption(c, a, o, &added)
			jobs.Metadata(added.Metadata)(s)
		}, nil
	case "env_file":
		path := e.caller.Absolute(cli.Get[string](c, "env-file"))
		return func(s *jobs.Spec) { s.EnvFile = path }, nil
	case "input":
		data, err := invocation.ReadSource("input", cli.Get[string](c, "input"), taskspec.MaxInput, a.Stdin)
		if data == nil {
			data = []byte{}
		}
		return func(s *jobs.Spec) { s.Input = data }, err
	case "in", "run_at":
		return func(s *jobs.Spec) {
			s.In, s.RunAt = 0, jobs.Spec{}.RunAt
			setOption(c, a, o, s)
		}, nil
	case "backoff_delay":
		return func(s *jobs.Spec) {
			setOption(c, a, o, s)
			if !c.IsSet("backoff-max") {
				s.Backoff.Max = max(s.Backoff.Max, s.Backoff.Delay)
			}
		}, nil
	}
	return func(s *jobs.Spec) { setOption(c, a, o, s) }, nil
}

// The method For prepares the changes to the task t: it looks up the program of a new command. The function that it returns writes the
// changes into the Spec of a task.
func (e *Edit) For(t jobs.Task) (func(jobs.Task, *jobs.Spec) error, error) {
	command := jobs.Command{Argv: e.words, Path: e.path, Dir: t.Cwd}
	for _, change := range e.changes { // find the new working directory: a relative path of the program starts there
		s := jobs.Spec{Options: jobs.Options{Cwd: command.Dir}}
		change(&s)
		command.Dir = s.Cwd
	}
	if e.words != nil && t.Job == jobs.CommandJob && !e.noResolve {
		find := Task{Words: e.words, Caller: e.caller}
		if f := find.resolve(&command); f != nil {
			f.Exit = 1
			return nil, f
		}
	}
	return func(t jobs.Task, s *jobs.Spec) error {
		for _, change := range e.changes {
			change(s)
		}
		switch {
		case e.words != nil && t.Job != jobs.CommandJob:
			return &jobs.FieldError{Field: "args", Msg: "it calls the function " + t.Job + ", which has no command; use --args"}
		case e.words != nil:
			s.Args, s.Path = command.With().Args, command.Path
		case e.args != nil && t.Job == jobs.CommandJob:
			return &jobs.FieldError{Field: "args", Msg: "it runs a command; write the new command after --"}
		case e.args != nil:
			s.Args = e.args
		}
		return nil
	}, nil
}

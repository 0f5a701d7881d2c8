package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// notEdited lists the flags of a new task that edit doesn't have. A task keeps
// its job and its dependencies.
var notEdited = []string{"job", "after", "after-any", "unique-mode", "unique-args", "unique-global", "inherit-env", "paused"}

// Edit has the changes of the command edit.
type Edit struct {
	flags   TaskFlags
	unset   []string // flags whose options get their defaults
	changes []jobs.Option
	words   []string        // of the new command; empty with --shell
	command command.Command // without an Argv to keep the command
	args    json.RawMessage // new arguments of a function; nil to keep them
	caller  ops.Invocation
}

// Options returns one flag for each task option that can change, and --unset.
func (e *Edit) Options(a *App) []Flag {
	var names []string
	for _, o := range taskspec.Options {
		if canUnset(o) {
			names = append(names, o.Flag)
		}
	}

	unset := Values(&e.unset, "unset", "OPTION,...", "set these options to their defaults", func(text string) ([]string, error) {
		list := strings.Split(text, ",")
		for i, name := range list {
			list[i] = strings.TrimPrefix(strings.TrimSpace(name), "--")
			if !slices.Contains(names, list[i]) {
				return nil, fmt.Errorf("unknown option %q (%s)", list[i], strings.Join(names, ", "))
			}
		}

		return list, nil
	})
	return append(Without(e.flags.Options(a), notEdited...), Group(What, unset)...)
}

// canUnset reports whether --unset accepts the option.
func canUnset(o *taskspec.OptionInfo) bool {
	return o.Flag != "" && o.Flag != "in" && o.Flag != "at" && !slices.Contains(notEdited, o.Flag)
}

// Read reads the changes from the flags. words are those of the new command, or
// nil if there is none.
func (e *Edit) Read(c *Context, a *App, words []string) (err error) {
	if e.caller, err = e.flags.caller(c, a); err != nil {
		return err
	}

	e.words, e.command.Argv = words, words
	switch {
	case c.IsSet("in") && c.IsSet("at"):
		return ui.Exclusive("--in", "--at")
	case c.IsSet("shell") && words != nil:
		return ui.Exclusive("--shell", "a command")
	case c.IsSet("args") && (c.IsSet("shell") || words != nil):
		return ui.Exclusive("--args", "a command")
	case c.IsSet("shell"):
		e.command = command.Shell(e.flags.Shell)
	case c.IsSet("args"):
		if e.args, err = ops.ReadArgs(e.flags.args, a.Stdin); err != nil {
			return err
		}
	}

	typed, err := e.flags.changes(a, e.caller)
	if err != nil {
		return err
	}

	for _, o := range taskspec.Options {
		if canUnset(o) && slices.Contains(e.unset, o.Flag) {
			e.changes = append(e.changes, func(s *jobs.Spec) { unset(o, s) })
		}
	}

	e.changes = append(e.changes, typed...)
	if len(e.changes) == 0 && e.command.Argv == nil && e.args == nil {
		return ui.Usage("edit needs an option or a command").
			Hint("runner edit 1042 --priority 9      runner edit 1042 -- backup.sh")
	}

	return nil
}

// unset sets an option to its default.
func unset(o *taskspec.OptionInfo, s *jobs.Spec) {
	o.Set(s, o.New())
	switch {
	case o.Key == "input":
		s.Input = []byte{} // not nil, because nil would mean that the task keeps its input
	case o.Key == "max_attempts" && s.Job == command.Job:
		s.MaxAttempts = taskspec.CommandAttempts
	}
}

// Prepare looks up the program of a new command, for the task t, and returns
// the changes.
func (e *Edit) Prepare(t jobs.Task) ([]jobs.Option, error) {
	path := e.command.Path
	if e.command.Argv != nil && t.Job == command.Job {
		moved := jobs.Spec{Options: jobs.Options{Cwd: t.Cwd}} // a relative path starts at the new working directory
		for _, change := range e.changes {
			change(&moved)
		}

		var f *ui.Error
		if path, f = resolve(e.caller, e.command, e.words, moved.Cwd); f != nil {
			f.Exit = 1
			return nil, f
		}
	}

	return append(slices.Clip(e.changes), func(s *jobs.Spec) {
		switch {
		case e.command.Argv != nil && s.Job != command.Job:
			s.Err = &jobs.FieldError{Field: "args", Msg: "it calls the function " + s.Job + ", which has no command; use --args"}
		case e.command.Argv != nil:
			s.Args, s.Path = jobs.Command(e.command).Args, path
		case e.args != nil && s.Job == command.Job:
			s.Err = &jobs.FieldError{Field: "args", Msg: "it runs a command; write the new command after --"}
		case e.args != nil:
			s.Args = e.args
		}
	}), nil
}

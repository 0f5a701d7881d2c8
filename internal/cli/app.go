// Package cli has what all commands share: arguments and flags, help, completion, the selection of tasks, and the choice of the database.
package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
)

// Command, Context and Flag are types of urfave/cli. Packages outside this one need no others of it.
type (
	Command = urfave.Command
	Context = urfave.Context
	Flag    = urfave.Flag
)

// App is the world as commands see it. A command's constructor is handed one and keeps it for its Action.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Commands       func(*App) []*Command
	Printer        *term.Printer // made from the command line before any Action runs
}

// groups are the headings of the root help screen, in its order. A command's Category is one of them, or empty for the
// bottom of the screen.
var groups = []string{"Run tasks", "See", "Steer", "Look after", "Inside a task"}

func (a *App) Run(ctx context.Context, args []string) (status int) {
	list := a.Commands(a)
	globals := GlobalOptions()
	line, err := Parse(list, globals, args, a.Getenv)
	a.Printer = a.printerFor(line)
	defer func() {
		if v := recover(); v != nil { // Go would exit with 2, which means that nothing was touched
			failure.Report(a.Printer, &failure.Error{Code: "internal", Exit: 1, What: fmt.Sprintf("internal error: %v", v),
				Why: append([]string{"this is a bug in runner; please report it with these lines"},
					strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")...)})
			status = 1
		}
	}()
	if err == nil {
		err = a.dispatch(ctx, list, globals, line)
	}
	if flushErr := a.Printer.Flush(); err == nil && flushErr != nil {
		err = &failure.Error{Code: "internal", Exit: 1, What: "cannot write the answer to stdout", Cause: flushErr}
	}
	if err != nil {
		failure.Report(a.Printer, err)
	}
	return failure.ExitCode(err)
}

// printerFor returns the printer that the command line and the environment ask for.
func (a *App) printerFor(line Line) *term.Printer {
	return term.New(term.Settings{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.Getenv, Now: a.Now,
		JSON: line.on("json"), Verbose: line.on("verbose"), Color: line.last("color")})
}

// dispatch answers --help and --version itself and leaves the rest to urfave/cli.
func (a *App) dispatch(ctx context.Context, list []*Command, globals []*Option, line Line) error {
	switch {
	case line.on("version"):
		return printVersion(a.Printer)
	case line.Command == nil:
		return a.rootHelp(list, line)
	case line.on("help"):
		return CommandHelp(a.Printer, line, globals)
	}
	return newCLI(list, globals).RunContext(ctx, line.argv())
}

// newCLI hands the commands to urfave/cli with everything switched off that it would do by itself: help on stdout after an
// error, words such as "help" and "h", completion requests in the argv, os.Exit. Most of these are set per command, as
// commands do not inherit them.
func newCLI(list []*Command, globals []*Option) *urfave.App {
	var prepare func([]*Command)
	prepare = func(list []*Command) {
		for _, c := range list {
			c.HideHelp, c.HideHelpCommand = true, true
			c.OnUsageError = func(_ *Context, err error, _ bool) error { return failure.Usage("%v", err) }
			if c.Action == nil { // a group
				c.Action = func(*Context) error {
					return failure.Usage("%s needs a command", c.Name).Hint("runner %s --help", c.Name)
				}
			}
			c.Flags = slices.Clone(c.Flags)
			for _, o := range globals {
				c.Flags = append(c.Flags, o)
			}
			prepare(c.Subcommands)
		}
	}
	prepare(list)
	return &urfave.App{
		Name: "runner", HelpName: "runner", Commands: list,
		HideHelp: true, HideHelpCommand: true, HideVersion: true, DisableSliceFlagSeparator: true,
		ExitErrHandler: func(*Context, error) {},
		Writer:         io.Discard, ErrWriter: io.Discard,
		Compiled: time.Unix(1, 0), // or urfave asks the file system for it
	}
}

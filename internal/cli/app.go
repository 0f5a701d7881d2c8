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

	"example.com/runner/internal/ui"
)

// Command, Context and Flag are the only types of urfave/cli that other packages need.
type (
	Command = urfave.Command
	Context = urfave.Context
	Flag    = urfave.Flag
)

// Entry is a command that is not created yet. The function New creates the command and sets all its fields except the name. The Action of
// the command uses the App that New receives.
type Entry struct {
	Name string
	New  func(*App) *Command
}

// App holds the streams, the environment and the clock that commands use.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Commands       []Entry
	asked          bool        // whether Complete has asked the database
	Printer        *ui.Printer // Run sets the printer, according to the command line, before it calls an Action
}

// groups lists the headings of the help of runner, in order. The field Category of a command names its heading. Commands without a Category
// come last.
var groups = []string{"Run", "Inspect", "Control", "Maintain"}

func (a *App) Run(ctx context.Context, args []string) (status int) {
	list := a.commandsFor(args)
	globals := GlobalOptions()
	line, err := Parse(list, globals, args, a.Getenv)
	a.Printer = a.printerFor(line)
	defer func() {
		if v := recover(); v != nil { // Go ends a panic with status 2, but status 2 of runner promises that nothing was changed
			ui.Report(a.Printer, &ui.Error{Code: "internal", Exit: 1, What: fmt.Sprintf("internal error: %v", v),
				Why: append([]string{"this is a bug in runner; please report it with these lines"},
					strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")...)})
			status = 1
		}
	}()
	if err == nil {
		err = a.dispatch(ctx, list, globals, line)
	}
	if flushErr := a.Printer.Flush(); err == nil && flushErr != nil {
		err = &ui.Error{Code: "internal", Exit: 1, What: "cannot write the answer to stdout", Cause: flushErr}
	}
	if err != nil {
		ui.Report(a.Printer, err)
	}
	return ui.ExitCode(err)
}

// commandsFor creates the commands that Parse needs for a command line. If the first argument is the name of a command, it creates only
// this command. To create all commands would take 3 % of the time of a short command.
func (a *App) commandsFor(args []string) []*Command {
	for _, e := range a.Commands {
		if len(args) > 0 && args[0] == e.Name {
			return a.create([]Entry{e})
		}
	}
	return a.AllCommands()
}

// AllCommands creates all commands.
func (a *App) AllCommands() []*Command { return a.create(a.Commands) }

func (a *App) create(entries []Entry) []*Command {
	list := make([]*Command, len(entries))
	for i, e := range entries {
		list[i] = e.New(a)
		list[i].Name = e.Name
	}
	return list
}

// printerFor returns a printer that follows the global options and the environment.
func (a *App) printerFor(line Line) *ui.Printer {
	return ui.New(ui.Settings{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.Getenv, Now: a.Now,
		JSON: line.isSet("json"), Verbose: line.isSet("verbose"), Color: line.last("color")})
}

// dispatch handles --help and --version itself and passes all other command lines to urfave/cli.
func (a *App) dispatch(ctx context.Context, list []*Command, globals []*Option, line Line) error {
	switch {
	case line.isSet("version"):
		return PrintVersion(a.Printer)
	case line.Command == nil:
		return a.rootHelp(list, globals, line)
	case line.isSet("help"):
		return CommandHelp(a.Printer, line, globals)
	}
	return newCLI(list, globals).RunContext(ctx, line.argv())
}

// newCLI returns an application of urfave/cli with the commands. It switches off parts of urfave/cli: help on stdout after an error, words
// such as "help" and "h", completion requests among the arguments, and calls of os.Exit. It must repeat most of these settings for each
// command, because commands do not inherit them.
func newCLI(list []*Command, globals []*Option) *urfave.App {
	var prepare func([]*Command)
	prepare = func(list []*Command) {
		for _, c := range list {
			c.HideHelp, c.HideHelpCommand = true, true
			c.OnUsageError = func(_ *Context, err error, _ bool) error { return ui.Usage("%v", err) }
			if c.Action == nil { // a command without an action is a group of subcommands
				c.Action = func(*Context) error {
					return ui.Usage("%s needs a command", c.Name).Hint("runner %s --help", c.Name)
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
		Compiled: time.Unix(1, 0), // an arbitrary time; if it is zero, urfave/cli reads the modification time of the executable
	}
}

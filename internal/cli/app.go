package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"example.com/runner/internal/ui"
)

// Command is a command of runner, or a group of commands.
type Command struct {
	Name        string
	Aliases     []string
	Category    string // its heading in the help of runner; commands without one come last
	Hidden      bool
	Usage       string // what it does, in a few words
	UsageText   string // its forms, one on each line
	Description string // its help; the first paragraph has the examples
	Flags       []*Option
	Subcommands []*Command           // the commands of a group, which has no Action
	Action      func(*Context) error // what runs it
}

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
		line.Context = ctx
		err = a.dispatch(list, globals, line)
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
func (a *App) printerFor(line *Context) *ui.Printer {
	return ui.New(ui.Settings{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.Getenv, Now: a.Now,
		JSON: Get[bool](line, "json"), Verbose: Get[bool](line, "verbose"), Color: Get[string](line, "color")})
}

// dispatch runs a parsed command line.
func (a *App) dispatch(list []*Command, globals []*Option, line *Context) error {
	switch c := line.Command; {
	case Get[bool](line, "version"):
		return PrintVersion(a.Printer)
	case c == nil:
		return a.rootHelp(list, globals, line)
	case Get[bool](line, "help"):
		return CommandHelp(a.Printer, line, globals)
	case c.Action == nil:
		return ui.Usage("%s needs a command", c.Name).Hint("runner %s --help", c.Name)
	default:
		return c.Action(line)
	}
}

package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"example.com/runner/internal/ui"
	"example.com/runner/runner"
)

// These are the only types of urfave/cli that other packages need.
type (
	Command = urfave.Command
	Context = urfave.Context
	Flag    = urfave.Flag
)

// Entry is a command that isn't created yet. New sets all fields of the command
// except the name.
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
	Printer        *ui.Printer // Run sets it before it calls an Action

	BusyTimeout time.Duration
	UnsafeFS    bool

	db       string
	format   string    // template of --format
	found    *database // see Database
	globals  []*Option
	hasAsked bool // whether Complete has asked the database
}

// groups lists the headings of runner's help, in order. A command's Category
// names its heading. Commands without one come last.
var groups = []string{"Run", "Inspect", "Control", "Maintain"}

func (a *App) Run(ctx context.Context, args []string) (status int) {
	a.BusyTimeout = 10 * time.Second
	a.globals = a.GlobalOptions()
	list := a.commandsFor(args)
	line, err := Parse(list, a.globals, args, a.Getenv)
	a.Printer = ui.New(ui.Settings{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.Getenv, Now: a.Now,
		JSON: line.isSet("json"), Verbose: line.isSet("verbose"), Color: line.last("color")})
	defer func() {
		if v := recover(); v != nil { // Go ends a panic with status 2, which promises that nothing was changed
			ui.Report(a.Printer, &ui.Error{Code: "internal", Exit: 1, What: fmt.Sprintf("internal error: %v", v),
				Why: append([]string{"this is a bug in runner; please report it with these lines"},
					strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")...)})
			status = 1
		}
	}()

	if err == nil {
		err = a.dispatch(ctx, list, line)
	}
	if flushErr := a.Printer.Flush(); err == nil && flushErr != nil {
		err = &ui.Error{Code: "internal", Exit: 1, What: "cannot write the answer to stdout", Cause: flushErr}
	}
	if err != nil {
		ui.Report(a.Printer, err)
	}

	return ui.ExitCode(err)
}

// commandsFor creates the commands that Parse needs. If the first argument is a
// command's name, that's only this one: to create all would take 3 % of a short
// command's time.
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

// dispatch handles --help and --version, and passes other lines to urfave/cli.
func (a *App) dispatch(ctx context.Context, list []*Command, line Line) error {
	switch {
	case line.isSet("version"):
		return PrintVersion(a.Printer)
	case line.Command == nil:
		return a.rootHelp(list, line)
	case line.isSet("help"):
		return CommandHelp(a.Printer, line, a.globals)
	}
	return line.run(ctx)
}

// run runs the command of the line by urfave/cli. It switches off parts of
// urfave/cli: help on stdout after an error, words such as "help" and "h",
// completion requests among the arguments, and calls of os.Exit.
func (line Line) run(ctx context.Context) error {
	c, name := line.Command, strings.Join(line.Path, " ")
	if c.Subcommands != nil {
		return ui.Usage("%s needs a command", name).Hint("runner %s --help", name)
	}

	c.HideHelp, c.HideHelpCommand = true, true
	for _, o := range line.globals {
		c.Flags = append(c.Flags, o)
	}

	c.HelpName = name

	argv := []string{"runner", c.Name}
	for _, g := range line.given {
		argv = append(argv, "--"+g.option.name+"="+g.text)
	}

	return (&urfave.App{
		Name: "runner", Commands: []*Command{c},
		HideHelp: true, HideHelpCommand: true, HideVersion: true, DisableSliceFlagSeparator: true,
		ExitErrHandler: func(*Context, error) {},
		Writer:         io.Discard, ErrWriter: io.Discard,
		Compiled: time.Unix(1, 0), // an arbitrary time; for zero, urfave/cli reads the executable's modification time
	}).RunContext(ctx, append(append(argv, "--"), line.words...))
}

// NoArgs is the Before of a command without arguments. In the hint, ARG stands
// for the argument; an empty hint is none.
func NoArgs(hint string) func(*Context) error {
	return func(c *Context) error {
		if !c.Args().Present() {
			return nil
		}
		f := ui.Usage("%s takes no arguments; got %q", strings.TrimPrefix(c.Command.HelpName, "runner "), c.Args().First())
		f.Try = strings.ReplaceAll(hint, "ARG", c.Args().First())
		return f
	}
}

// Run is what a command does with an open database.
type Run func(context.Context, *runner.Runner, *ui.Printer) error

// Action runs a command: check completes what the options have set, and may be
// nil; then Action opens the database and calls run.
func (a *App) Action(check func(*Context, *App) error, run Run) func(*Context) error {
	return a.action(false, check, run)
}

// Creates is an Action that creates a missing database.
func (a *App) Creates(check func(*Context, *App) error, run Run) func(*Context) error {
	return a.action(true, check, run)
}

func (a *App) action(create bool, check func(*Context, *App) error, run Run) func(*Context) error {
	return func(c *Context) (err error) {
		if check != nil {
			if err = check(c, a); err != nil {
				return err
			}
		}
		if c.IsSet("format") && a.Printer.JSON {
			return ui.Exclusive("--format", "--json")
		}
		if c.IsSet("format") {
			if a.Printer.Format, err = ui.NewFormat(a.Printer, a.format); err != nil {
				return err
			}
		}

		r, err := a.Open(c, create, runner.Options{})
		if err != nil {
			return err
		}
		defer r.Close()

		return run(c.Context, r, a.Printer)
	}
}

// Reads is the Run of a command that reads a database. If the database was
// moved to another place, it says so.
func Reads(run Run) Run {
	return func(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
		if err := ui.WarnFrozen(ctx, r, p); err != nil {
			return err
		}
		return run(ctx, r, p)
	}
}

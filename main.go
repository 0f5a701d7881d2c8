// Runner is a durable job runner in one file: one binary, one SQLite database.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones for images that have none

	"github.com/urfave/cli/v2"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

func main() {
	if runner.Guardian() {
		return
	}
	growStack(0)
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// growStack makes the stack of its goroutine as large as SQLite needs it to read a schema, while the stack is still nearly empty. If the
// stack
// grew below SQLite's calls, Go would look up the frame of each of them: 1.6 MB of tables that nothing else of a short process reads. It is
// called with 0; the frame alone has the size.
//
//go:noinline
func growStack(n int) (sum byte) {
	if n > 0 {
		var frame [40 << 10]byte
		for i := range n {
			frame[i%len(frame)] = byte(i)
		}
		sum = frame[n%len(frame)]
	}
	return sum
}

// run is the program: args[0] is its name. It returns the exit status (cli.md 8).
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, getenv: os.Getenv, now: time.Now}
	return a.run(ctx, args[1:])
}

// app is the world as commands see it. A command's constructor is handed one and keeps it for its Action.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	printer        *term.Printer // made from the command line before any Action runs
}

// groups are the headings of the root help screen, in its order. A command's Category is one of them, or empty for the
// bottom of the screen.
var groups = []string{"Run tasks", "See", "Steer", "Look after", "Inside a task"}

// commands lists every command there is, in the order of the help screen. A new one is a file cmd_x.go and a line here.
func commands(a *app) []*cli.Command {
	return []*cli.Command{
		enqueueCommand(a),
		workCommand(a),
		scheduleCommand(a),
		statusCommand(a),
		listCommand(a),
		showCommand(a),
		logsCommand(a),
		waitCommand(a),
		cancelCommand(a),
		retryCommand(a),
		deleteCommand(a),
		pauseCommand(a),
		resumeCommand(a),
		limitCommand(a),
		doctorCommand(a),
		backupCommand(a),
		moveCommand(a),
		serveCommand(a),
		fenceCommand(a),
		completionCommand(a),
		selftestCommand(a),
		completeCommand(a),
		selftestRoleCommand(a),
	}
}

func (a *app) run(ctx context.Context, args []string) (status int) {
	list := commands(a)
	globals := globalFlags()
	line, err := permute(list, globals, args, a.getenv)
	a.printer = a.printerFor(line)
	defer func() {
		if v := recover(); v != nil { // Go would exit with 2, which means that nothing was touched
			failure.Report(a.printer, &failure.Error{Code: "internal", Exit: 1, What: fmt.Sprintf("internal error: %v", v),
				Why: append([]string{"this is a bug in runner; please report it with these lines"},
					strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")...)})
			status = 1
		}
	}()
	if err == nil {
		err = a.dispatch(ctx, list, globals, line)
	}
	if flushErr := a.printer.Flush(); err == nil && flushErr != nil {
		err = &failure.Error{Code: "internal", Exit: 1, What: "cannot write the answer to stdout", Cause: flushErr}
	}
	if err != nil {
		failure.Report(a.printer, err)
	}
	return failure.ExitCode(err)
}

// printerFor returns the printer that the command line and the environment ask for.
func (a *app) printerFor(line commandLine) *term.Printer {
	return term.New(term.Settings{Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Getenv: a.getenv, Now: a.now,
		JSON: line.on("json"), Verbose: line.on("verbose"), Color: line.last("color")})
}

// dispatch answers --help and --version itself and leaves the rest to urfave/cli.
func (a *app) dispatch(ctx context.Context, list []*cli.Command, globals []*option, line commandLine) error {
	switch {
	case line.on("version"):
		return printVersion(a.printer)
	case line.command == nil:
		return a.rootHelp(list, line)
	case line.on("help"):
		return commandHelp(a.printer, line, globals)
	}
	return newCLI(list, globals).RunContext(ctx, line.argv())
}

// newCLI hands the commands to urfave/cli with everything switched off that it would do by itself: help on stdout after an
// error, words such as "help" and "h", completion requests in the argv, os.Exit. Most of these are set per command, as
// commands do not inherit them.
func newCLI(list []*cli.Command, globals []*option) *cli.App {
	var prepare func([]*cli.Command)
	prepare = func(list []*cli.Command) {
		for _, c := range list {
			c.HideHelp, c.HideHelpCommand = true, true
			c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return failure.Usage("%v", err) }
			if c.Action == nil { // a group
				c.Action = func(*cli.Context) error {
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
	return &cli.App{
		Name: "runner", HelpName: "runner", Commands: list,
		HideHelp: true, HideHelpCommand: true, HideVersion: true, DisableSliceFlagSeparator: true,
		ExitErrHandler: func(*cli.Context, error) {},
		Writer:         io.Discard, ErrWriter: io.Discard,
		Compiled: time.Unix(1, 0), // or urfave asks the file system for it
	}
}

// Runner is a durable job runner in one file: one binary, one SQLite database.
package main

import (
	"context"
	"io"
	"os"
	"time"
	_ "time/tzdata" // time zones for images that have none

	"example.com/runner/internal/cli"
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

// run runs the program and returns its exit status. args[0] is the name of the program.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &cli.App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv, Now: time.Now, Commands: commands}
	return a.Run(ctx, args[1:])
}

// commands lists every command there is, in the order of the help screen. A new one is a file cmd_x.go and a line here.
func commands(a *cli.App) []*cli.Command {
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

// Runner is a durable job runner in one SQLite file or on a PostgreSQL server.
package main

import (
	"context"
	"io"
	"os"
	"time"
	_ "time/tzdata" // contains the time zones, for container images without them

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

// growStack grows the stack of its goroutine to the size that SQLite needs to read a schema. Function main calls it while the stack is
// nearly empty. If the stack grew inside SQLite's calls, Go would look up each of their frames. The lookup reads 1.6 MB of tables that a
// short process does not need otherwise. The call growStack(0) is enough, because the frame of the function has the needed size.
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

// run runs the program and returns its exit status. args[0] is the program itself.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &cli.App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv, Now: time.Now, Commands: commands}
	return a.Run(ctx, args[1:])
}

// commands returns all commands, in the order of the help. To add a command, add a file cmd_x.go and a line here.
func commands(a *cli.App) []*cli.Command {
	return []*cli.Command{
		runCommand(a),
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
		editCommand(a),
		topCommand(a),
		holdCommand(a),
		releaseCommand(a),
		deleteCommand(a),
		pauseCommand(a),
		resumeCommand(a),
		limitCommand(a),
		hookCommand(a),
		doctorCommand(a),
		backupCommand(a),
		moveCommand(a),
		serveCommand(a),
		serviceCommand(a),
		fenceCommand(a),
		completionCommand(a),
		selftestCommand(a),
		versionCommand(a),
		completeCommand(a),
		selftestRoleCommand(a),
	}
}

// Runner is a durable job runner in one SQLite file or on a PostgreSQL server.
package main

import (
	"context"
	"io"
	"os"
	"time"
	_ "time/tzdata" // the time zones, because some container images have none

	"example.com/runner/internal/cli"
	"example.com/runner/runner/commands"
)

func main() {
	if commands.Guardian() {
		return
	}
	growStack(0)
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit status of the program. args[0] is the program itself.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &cli.App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv, Now: time.Now, Commands: entries}
	return a.Run(ctx, args[1:])
}

// entries lists all commands, in the order of the help. To add one, add a file
// cmd_x.go and a line here.
var entries = []cli.Entry{
	{Name: "run", New: runCommand},
	{Name: "enqueue", New: enqueueCommand},
	{Name: "work", New: workCommand},
	{Name: "schedule", New: scheduleCommand},
	{Name: "status", New: statusCommand},
	{Name: "list", New: listCommand},
	{Name: "show", New: showCommand},
	{Name: "logs", New: logsCommand},
	{Name: "wait", New: waitCommand},
	{Name: "cancel", New: cancelCommand},
	{Name: "retry", New: retryCommand},
	{Name: "edit", New: editCommand},
	{Name: "delete", New: deleteCommand},
	{Name: "pause", New: pauseCommand},
	{Name: "resume", New: resumeCommand},
	{Name: "limit", New: limitCommand},
	{Name: "doctor", New: doctorCommand},
	{Name: "backup", New: backupCommand},
	{Name: "restore", New: restoreCommand},
	{Name: "move", New: moveCommand},
	{Name: "serve", New: serveCommand},
	{Name: "service", New: serviceCommand},
	{Name: "fence", New: fenceCommand},
	{Name: "completion", New: completionCommand},
	{Name: "__complete", New: completeCommand},
}

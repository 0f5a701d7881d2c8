package runner

import (
	"context"
	"encoding/json"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
	"example.com/runner/runner/internal/exec"
)

// CommandOptions are the options of Commands.
type CommandOptions struct {
	// Tee receives the output of commands as it comes, and nil at the end of a stream. Several goroutines call it. It must not keep
	// the data. By default there is none.
	Tee func(task jobs.Task, stream string, data []byte)
}

// Commands returns the handler of the job "command". A program that does not register it runs functions only.
func Commands(options CommandOptions) jobs.Handler {
	return jobs.Handler{Job: jobs.CommandJob, MaxAttempts: jobs.CommandAttempts,
		Run: func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
			return engine.RunCommand(ctx, task, options.Tee)
		}}
}

// Guardian must be the first call in the main function of a program that runs commands:
//
//	if runner.Guardian() {
//		return
//	}
//
// It returns false at once, and Work then finds that it was called. A worker starts its own program once more for each command that runs at
// the same time. That process is the guardian: it starts the command, and kills all processes of the command when the command ends, and
// when the worker is killed or stopped for too long. In the guardian the function returns true when the work is done. Package
// initialisation runs in the guardian, too. See also Options.GuardianPath.
func Guardian() bool { return exec.Guardian(Version) }

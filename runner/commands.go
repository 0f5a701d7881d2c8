package runner

import (
	"context"
	"encoding/json"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
	"example.com/runner/runner/internal/exec"
)

// CommandOptions are the options of Commands.
type CommandOptions struct {
	// Tee receives the output of commands while they run, and nil at the end of
	// a stream. Several goroutines call Tee. It must not keep the data after it
	// returns. Defaults to no function.
	Tee func(task jobs.Task, stream string, data []byte)
	// PagesURL is the URL of the pages of package web, such as
	// "https://runner.example.com". With a PagesURL, the variable
	// RUNNER_EVENT_URL of a hook has the URL of a page: that of the task or
	// schedule that the hook reports. Defaults to no URL.
	PagesURL string
}

// Commands returns the handler of the job "command". A program that does not
// register this handler runs functions only.
func Commands(options CommandOptions) jobs.Handler {
	return jobs.Handler{Job: jobs.CommandJob, MaxAttempts: taskspec.CommandAttempts,
		Run: func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
			return engine.RunCommand(ctx, task, options.Tee, options.PagesURL)
		}}
}

// Guardian must be the first call in the main function of a program that runs
// commands:
//
//	if runner.Guardian() {
//		return
//	}
//
// In the program itself, Guardian returns false immediately. It also records
// that it was called, because Work checks this. A guardian is another process
// of the worker's program, and a worker has one guardian for each command that
// runs at the same time. The guardian starts the command. It kills all
// processes of the command when the command ends, and also when the worker is
// killed or stopped for too long. In the guardian process, Guardian returns
// true when the guardian has nothing left to do. Package initialisation runs in
// the guardian, too. See also WorkOptions.GuardianPath.
func Guardian() bool { return exec.Guardian(Version) }

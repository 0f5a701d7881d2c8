package runner

import (
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/jobs"
)

// Describe says in one line what a task runs: a command quoted for a shell, or the name of a job and its arguments. It is
// text of whoever enqueued the task: not fit for a terminal as it is.
func Describe(t jobs.Task) string {
	if t.Job != jobs.CommandJob {
		return strings.TrimSpace(t.Job + " " + string(t.Args))
	}
	argv, err := jobs.Argv(t.Args)
	if err != nil {
		return string(t.Args)
	}
	return shellescape.QuoteCommand(argv)
}

// Package tasktext describes tasks in one line, for the logs of workers, the terminal and the pages.
package tasktext

import (
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/jobs"
)

// Describe returns the command or function of a task in one line: a command quoted for a shell, or the name of a job and its arguments.
// The text comes from the user who enqueued the task, so it must be made safe before it is printed on a terminal.
func Describe(t jobs.Task) string {
	if t.Job == jobs.CommandJob {
		if argv, err := jobs.Argv(t.Args); err == nil {
			return shellescape.QuoteCommand(argv)
		}
	}
	return strings.TrimSpace(t.Job + " " + string(t.Args))
}

package output

import (
	"fmt"
	"strings"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// These are the exit statuses of a wait that don't come from the task's
// command.
const (
	StatusTimedOut = 124 // the --timeout of the wait has passed, or the task exceeded its own timeout
	NoResult       = 125 // the task has no result, for example because it was cancelled
)

// ExitStatus returns the exit status for a task that has ended, and why. The
// reason is empty if the task completed, or if its command failed with an exit
// status: its output then says why. A deleted task has no state.
func ExitStatus(t jobs.Task) (status int, why string) {
	line := FirstLine(t.Error)
	what := fmt.Sprintf("task %d %s: %s", t.ID, t.State, line)
	switch t.State {
	case "":
		return NoResult, fmt.Sprintf("task %d was deleted", t.ID)
	case jobs.Completed:
		return 0, ""
	case jobs.Cancelled:
		if t.Reason == jobs.ReasonExpired {
			what = fmt.Sprintf("task %d expired: it had not started in time", t.ID)
		}
		return NoResult, what
	}

	switch t.Reason {
	case jobs.ReasonExit:
		if t.ExitCode != nil {
			return *t.ExitCode, ""
		}
	case jobs.ReasonSignal, jobs.ReasonMemory:
		return 128 + t.Signal, what
	case jobs.ReasonStart:
		if t.ExitCode != nil {
			return *t.ExitCode, what
		}
	case jobs.ReasonTimeout:
		return StatusTimedOut, what
	case jobs.ReasonError, jobs.ReasonArgs, jobs.ReasonPanic:
		return 1, what
	}

	return NoResult, what
}

// FailedText returns a line that says why a task didn't complete.
func FailedText(t jobs.Task) string {
	if _, why := ExitStatus(t); why != "" {
		return why
	}
	return fmt.Sprintf("task %d %s: %s", t.ID, t.State, FirstLine(t.Error))
}

func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Finish returns an error with an ended task's exit status, and prints the
// reason to stderr, except with --json.
func Finish(p *ui.Printer, t jobs.Task) error {
	status, why := ExitStatus(t)
	switch {
	case status == 0:
		return nil
	case t.State == "":
		return &ui.Error{Code: "not_found", Exit: status, What: why}
	case why != "":
		p.Tell("runner: %s", why)
	}

	return ui.ExitStatus(status)
}

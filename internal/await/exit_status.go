package await

import (
	"fmt"
	"strings"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// The exit statuses of a wait that do not come from a task.
const (
	StatusTimedOut = 124 // --timeout of the wait, or the task's own timeout
	NoResult       = 125 // there is no result to report
)

// ExitStatus returns the exit status for the end of a task and the reason of that status. The reason is empty if the output of the task
// explains the end. A task without a state was deleted.
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
	case jobs.ReasonError, jobs.ReasonPanic:
		return 1, what
	}
	return NoResult, what
}

// FailedText returns one line that says that a task did not complete.
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

// Finish ends the wait for one task. It returns the exit status as an error and prints the reason to stderr. It prints nothing if the
// output or the record of the task already explains the end.
func Finish(p *term.Printer, t jobs.Task) error {
	status, why := ExitStatus(t)
	switch {
	case status == 0:
		return nil
	case t.State == "":
		return &failure.Error{Code: "not_found", Exit: status, What: why}
	case why != "" && !p.JSON:
		p.Say("runner: %s", why)
	}
	return failure.ExitStatus(status)
}

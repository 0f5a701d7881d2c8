package output

import (
	"testing"

	"example.com/runner/jobs"
)

func TestExitStatusOfTask(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, test := range []struct {
		task   jobs.Task
		status int
		why    string
	}{
		{jobs.Task{State: jobs.Completed}, 0, ""},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonExit, ExitCode: code(75), Error: "exit status 75"}, 75, ""},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonSignal, Signal: 9, Error: "killed by signal 9"}, 137,
			"task 7 failed: killed by signal 9"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonTimeout, Signal: 15, Error: "ran for longer than 1s"}, 124,
			"task 7 failed: ran for longer than 1s"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonStart, ExitCode: code(127), Error: "x: not found"}, 127,
			"task 7 failed: x: not found"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonStart, ExitCode: code(126), Error: "cannot execute x"}, 126,
			"task 7 failed: cannot execute x"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonError, Error: "no such address"}, 1, "task 7 failed: no such address"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonError, ExitCode: code(0), Error: "result: not JSON"}, 1,
			"task 7 failed: result: not JSON"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonArgs, Error: "args of x"}, 1, "task 7 failed: args of x"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonPanic, Error: "panic: nil map\n\ngoroutine 1"}, 1,
			"task 7 failed: panic: nil map"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonLost, Error: "its worker died"}, 125, "task 7 failed: its worker died"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonShutdown, ExitCode: code(3), Error: "its worker stopped"}, 125,
			"task 7 failed: its worker stopped"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, ExitCode: code(0), Error: "by ann: disk full"}, 125,
			"task 7 cancelled: by ann: disk full"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "no longer needed"}, 125,
			"task 7 cancelled: no longer needed"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonExpired}, 125, "task 7 expired: it had not started in time"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonDependency, Error: "task 6 failed"}, 125, "task 7 cancelled: task 6 failed"},
		{jobs.Task{}, 125, "task 7 was deleted"},
	} {
		test.task.ID = 7
		if status, why := ExitStatus(test.task); status != test.status || why != test.why {
			t.Errorf("%s %s: got %d %q, want %d %q", test.task.State, test.task.Reason, status, why, test.status, test.why)
		}
	}
}

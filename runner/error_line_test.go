package runner_test

import (
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestFailedCommandKeepsItsLastLine(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	for _, c := range []struct {
		script, want string
		options      []jobs.Option
	}{
		{script: "echo out; exit 1", want: "out"},
		{script: "echo 'cp: no space left on device' >&2; echo out; exit 1", want: "cp: no space left on device"},
		{script: `printf '\033[31mred\033[0m\n\033[0m\n' >&2; kill -9 $$`, want: "red"},
		{script: "seq 100000; echo last; exit 1", want: "last"},
		{script: "head -c 3000 /dev/zero | tr '\\0' x; exit 1", want: strings.Repeat("x", 197) + "…"},
		{script: "exit 1"},
		{script: "echo out"},
		{script: "echo secret; exit 1", options: []jobs.Option{func(s *jobs.Spec) { s.OutputLimit = 0 }}},
	} {
		task := runnerkit.Enqueue(t, r, jobs.Command(command.Shell(c.script), append(c.options, jobs.MaxAttempts(1))...))
		runnerkit.Drain(t, r)
		got := runnerkit.Get(t, r, task.ID)
		testkit.Equal(t, c.script, got.ErrorLine, c.want)
		attempts, err := admin.Attempts(t.Context(), r, got)
		testkit.NoError(t, err)
		testkit.Equal(t, c.script+": attempt", attempts[0].ErrorLine, c.want)
	}

	// A busy machine may need longer than the timeout until the command prints
	// its line.
	for timeout := 300 * time.Millisecond; ; timeout *= 4 {
		task := runnerkit.Enqueue(t, r, jobs.Command(command.Shell("echo begun; sleep 600"), jobs.Timeout(timeout), jobs.MaxAttempts(1)))
		runnerkit.Drain(t, r)
		if line := runnerkit.Get(t, r, task.ID).ErrorLine; line != "" || timeout > testkit.Patience {
			testkit.Equal(t, "line before the timeout", line, "begun")
			return
		}
	}
}

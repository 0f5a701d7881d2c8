package main

import (
	"strings"
	"testing"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// waitingTasks returns a database with n waiting tasks in queue media.
func waitingTasks(t *testing.T, n int, options ...jobs.Option) *runner.Runner {
	t.Helper()
	r := runnerkit.Open(t, runner.Options{})
	for range n {
		spec := jobs.Command(command.Command{Argv: []string{"echo", "größe 日本語"}}, append(options, jobs.Queue("media"))...)
		runnerkit.Enqueue(t, r, spec)
	}
	return r
}

func TestCancelByFilterAsksOnTerminal(t *testing.T) {
	for _, test := range []struct {
		tasks    int
		answer   string
		question string
		want     jobs.State
		status   int
	}{
		{2, "y\n", "Cancel 2 tasks in media? [y/N] ", jobs.Cancelled, 0},
		{2, "Yes\n", "Cancel 2 tasks in media? [y/N] ", jobs.Cancelled, 0},
		{2, "\n", "Cancel 2 tasks in media? [y/N] nothing was changed\n", jobs.Pending, 1},
		{2, "", "Cancel 2 tasks in media? [y/N] nothing was changed\n", jobs.Pending, 1},
		{9, "y\n", "Cancel 9 tasks in media? [y/N] ", jobs.Cancelled, 0},
		{1, "n\n", "", jobs.Cancelled, 0},
	} {
		r := waitingTasks(t, test.tasks)
		p, out, stderr := termtest.Printer(80)
		p.AnswerWith(strings.NewReader(test.answer))
		o := cancelOptions{Bulk: cli.Bulk{Verb: "cancel", Done: "cancelled",
			Selection: cli.Selection{Filter: jobs.Filter{Queues: []string{"media"}, States: taskspec.Unfinished()}}}}
		err := o.run(t.Context(), r, p)
		p.Flush()
		testkit.Equal(t, "exit status", ui.ExitCode(err), test.status)
		testkit.Equal(t, "question", stderr.String(), test.question)
		n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{test.want}})
		testkit.NoError(t, err)
		testkit.Equal(t, "changed tasks", n, test.tasks)
		testkit.Equal(t, "lines on stdout", strings.Count(out.String(), "\n"), n*(1-test.status))
	}
}

func TestDryRunFitsTerminal(t *testing.T) {
	r := waitingTasks(t, 25, jobs.Label("sommer"))
	for _, columns := range []int{20, 40, 80, 120} {
		p, out, _ := termtest.Printer(columns)
		o := cancelOptions{Bulk: cli.Bulk{Verb: "cancel", Done: "cancelled", DryRun: true, Selection: cli.Selection{All: true}}}
		if err := o.run(t.Context(), r, p); err != nil {
			t.Fatal(err)
		}
		p.Flush()
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		testkit.Len(t, "lines", lines, cli.ShownLines+1)
		testkit.Equal(t, "last line", lines[cli.ShownLines], "and 5 more")
		for _, line := range lines {
			if ui.Cells(line) > columns {
				t.Errorf("%d columns: got %d cells in %q, want at most %[1]d", columns, ui.Cells(line), line)
			}
		}
	}
}

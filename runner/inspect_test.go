package runner_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"example.com/runner/db"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestQueuePositionCountsTasksThatStartFirst(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	add := func(queue string, priority int) jobs.Task {
		return runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}, jobs.Queue(queue), jobs.Priority(priority)))
	}
	first := add("a", 5)
	second := add("a", 5)
	add("b", 9) // this task is not ahead of the tasks in queue a, because the queues take turns
	high := add("a", 6)
	for task, want := range map[*jobs.Task]int{&first: 1, &second: 2, &high: 0} {
		if n, err := db.Of(r).QueuePosition(t.Context(), *task, 100); err != nil || n != want {
			t.Errorf("%d tasks are ahead of task %d, want %d (%v)", n, task.ID, want, err)
		}
	}
	queues, err := admin.Queues(t.Context(), r)
	testkit.NoError(t, err)
	testkit.Len(t, "queues", queues, 2)
	testkit.Equal(t, "pending tasks of the first queue", queues[0].Counts[jobs.Pending], 3)
	testkit.Equal(t, "commands in the first queue", queues[0].Jobs["command"], 3)
	testkit.Equal(t, "commands in the second queue", queues[1].Jobs["command"], 1)
}

func TestOutputBeforeReturnsLastPieces(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Shell("echo out; sleep 0.2; echo err >&2; sleep 0.2; echo end")))
	runnerkit.Drain(t, r)
	attempts, err := admin.Attempts(t.Context(), r, runnerkit.Get(t, r, task.ID))
	testkit.NoError(t, err)
	testkit.Len(t, "attempts", attempts, 1)
	for limit, want := range map[int]string{1: "end\n", 2: "err\nend\n", 9: "out\nerr\nend\n"} {
		var text strings.Builder
		chunks, err := ui.OutputBefore(t.Context(), r, attempts[0], math.MaxInt64, limit)
		for _, c := range chunks {
			text.Write(c.Data)
		}
		if err != nil || text.String() != want {
			t.Errorf("last %d pieces: %q, want %q (%v)", limit, &text, want, err)
		}
	}
}

func TestAttemptThatEndsMeanwhileIsListedOnce(t *testing.T) {
	for name, result := range map[string]error{"completed": nil, "failed": errors.New("bad")} {
		r := runnerkit.Open(t, runner.Options{})
		var id int64
		var running jobs.Task
		look := jobs.Define[int]("look", jobs.MaxAttempts(1))
		r.Register(look.Handler(func(ctx context.Context, _ int) (err error) {
			if running, err = r.Get(ctx, id); err != nil {
				t.Error(err)
			}
			return result
		}))
		id = runnerkit.Enqueue(t, r, look.With(1)).ID
		runnerkit.Drain(t, r)
		testkit.Equal(t, name+": state when the task was read", running.State, jobs.Running)
		attempts, err := admin.Attempts(t.Context(), r, running)
		testkit.NoError(t, err)
		testkit.Len(t, name+": attempts", attempts, 1)
	}
}

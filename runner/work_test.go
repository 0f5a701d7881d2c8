package runner_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

type pair struct{ A, B int }

var add = jobs.DefineResult[pair, int]("add")

func TestFunctionRunsAndItsResultIsStored(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(add.Handler(func(_ context.Context, p pair) (int, error) { return p.A + p.B, nil }))
	task := runnerkit.Enqueue(t, r, add.With(pair{2, 3}))
	runnerkit.Drain(t, r)
	sum, err := add.Result(r.Await(t.Context(), task.ID))
	testkit.NoError(t, err)
	testkit.Equal(t, "sum", sum, 5)
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Completed)
	testkit.Equal(t, "attempt", got.Attempt, 1)
	testkit.Equal(t, "max attempts", got.MaxAttempts, taskspec.FuncAttempts)
	testkit.Equal(t, "the end is missing", got.FinishedAt.IsZero(), false)
}

func TestCommandRunsAndItsOutputIsStored(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	script := `echo "hello $1"; cat; printf '{"n":1}' >"$RUNNER_RESULT"`
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", script, "x", "wörld"}, Input: []byte("input")}))
	runnerkit.Drain(t, r)
	if text := runnerkit.Output(t, r, task.ID); text != "hello wörld\ninput" {
		t.Errorf("got %q, want %q", text, "hello wörld\ninput")
	}
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Completed)
	testkit.Equal(t, "result", string(got.Result), `{"n":1}`)
	if got.ExitCode == nil {
		t.Fatal("got no exit code, want 0")
	}
	testkit.Equal(t, "exit code", *got.ExitCode, 0)
}

func TestFailedAttemptsAreRetriedAndKeepTheirErrors(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", "exit 7"}}, jobs.MaxAttempts(3),
		jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed})))
	runnerkit.Drain(t, r)
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Failed)
	testkit.Equal(t, "reason", got.Reason, jobs.ReasonExit)
	testkit.Equal(t, "attempt", got.Attempt, 3)
	if got.ExitCode == nil {
		t.Fatal("got no exit code, want 7")
	}
	testkit.Equal(t, "exit code", *got.ExitCode, 7)
	attempts, err := admin.Attempts(t.Context(), r, got)
	testkit.NoError(t, err)
	testkit.Len(t, "attempts", attempts, 3)
	for i, a := range attempts {
		testkit.Equal(t, "attempt", a.Number, i+1)
		testkit.Equal(t, "error", a.Error, "exit status 7")
		testkit.Equal(t, "counted", a.Counted, true)
		testkit.Equal(t, "state", a.State, jobs.Failed)
	}
}

func TestPanicFailsAttempt(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	boom := jobs.Define[json.RawMessage]("boom", jobs.MaxAttempts(1))
	r.Register(boom.Handler(func(context.Context, json.RawMessage) error { panic("kaput") }))
	task := runnerkit.Enqueue(t, r, boom.With(nil))
	runnerkit.Drain(t, r)
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "reason", got.Reason, jobs.ReasonPanic)
	testkit.Contains(t, got.Error, "kaput", "work_test.go")
}

func TestCancelStopsRunningCommand(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "600"}}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx, runner.WorkOptions{}) }()
	err := admin.Changes(t.Context(), r, func() (bool, error) { return runnerkit.Get(t, r, task.ID).State == jobs.Running, nil })
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	moved, err := r.Cancel(t.Context(), []int64{task.ID}, runner.CancelOptions{Reason: "enough"})
	testkit.NoError(t, err)
	testkit.Equal(t, "state after the cancel request", moved[0].State, jobs.Running)
	got, err := r.Await(t.Context(), task.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "state", got.State, jobs.Cancelled)
	testkit.Contains(t, got.Error, "enough")
	t.Log("cancelled after", time.Since(began))
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestDrainReleasesTasksThatDoNotEnd(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	begun := filepath.Join(t.TempDir(), "begun")
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", `touch "$0"; exec sleep 600`, begun}}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx, runner.WorkOptions{Grace: 10 * time.Millisecond}) }()
	testkit.Eventually(t, "the command", func() bool { _, err := os.Stat(begun); return err == nil })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Pending)
	testkit.Equal(t, "reason", got.Reason, jobs.ReasonShutdown)
	testkit.Equal(t, "attempt", got.Attempt, 0)
}

// TestCommandThatAnswersTermWithExitZero checks a command that exits with
// status 0 after SIGTERM. If the worker sent the signal because it shuts down,
// the task is completed. If the worker sent the signal because of a timeout or
// a cancellation, the task is not completed.
func TestCommandThatAnswersTermWithExitZero(t *testing.T) {
	t.Parallel()
	script := `trap 'echo "\"saved\"" >"$RUNNER_RESULT"; exit 0' TERM; touch "$0"; while :; do sleep 0.01; done`
	shutdown := func(_ *testing.T, _ *runner.Runner, _ int64, stop func()) { stop() }
	cancel := func(t *testing.T, r *runner.Runner, id int64, stop func()) {
		if _, err := r.Cancel(t.Context(), []int64{id}, runner.CancelOptions{}); err != nil {
			t.Error(err)
		}
		until(t, r, func() bool { return runnerkit.Get(t, r, id).State.Finished() })
		stop()
	}
	wait := func(t *testing.T, r *runner.Runner, id int64, stop func()) {
		until(t, r, func() bool { return runnerkit.Get(t, r, id).State.Finished() })
		stop()
	}
	for name, test := range map[string]struct {
		options []jobs.Option
		end     func(t *testing.T, r *runner.Runner, id int64, stop func())
		state   jobs.State
		reason  jobs.Reason
	}{
		"shutdown":               {nil, shutdown, jobs.Completed, ""},
		"shutdown, at most once": {[]jobs.Option{jobs.AtMostOnce()}, shutdown, jobs.Completed, ""},
		"cancel":                 {nil, cancel, jobs.Cancelled, jobs.ReasonCancelled},
		"timeout":                {[]jobs.Option{jobs.Timeout(time.Second)}, wait, jobs.Failed, jobs.ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runnerkit.Open(t, runner.Options{})
			r.Register(commands.Handler(commands.Options{}))
			begun := filepath.Join(t.TempDir(), "begun")
			task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", script, begun}}, test.options...))
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- r.Work(ctx, runner.WorkOptions{Grace: 10 * time.Millisecond}) }()
			testkit.Eventually(t, "the command", func() bool { _, err := os.Stat(begun); return err == nil })
			test.end(t, r, task.ID, stop)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			got := runnerkit.Get(t, r, task.ID)
			if got.State != test.state || got.Reason != test.reason {
				t.Errorf("got %s (%s): %s, want %s (%s)", got.State, got.Reason, got.Error, test.state, test.reason)
			}
			if result := string(got.Result); test.state == jobs.Completed && result != `"saved"` {
				t.Errorf("got result %q, want %q", result, `"saved"`)
			}
		})
	}
}

func TestAbortKillsCommands(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", "trap '' TERM; sleep 600"}}))
	done := make(chan error, 1)
	go func() { done <- r.Work(t.Context(), runner.WorkOptions{}) }()
	running := func() (bool, error) { return runnerkit.Get(t, r, task.ID).State == jobs.Running, nil }
	if err := admin.Changes(t.Context(), r, running); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	admin.Abort(r)
	testkit.ErrorIs(t, <-done, jobs.ErrShutdown)
	t.Log("gone after", time.Since(began))
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Pending)
	testkit.Equal(t, "attempt", got.Attempt, 0)
}

// TestWorkReportsAbortDuringDrain calls Abort just before the only attempt
// ends. So the loop of the worker gets two events at once: the abort and the
// end of the attempt.
func TestWorkReportsAbortDuringDrain(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	var stop context.CancelFunc
	r.Register(quick.Handler(func(context.Context, any) error {
		stop()
		admin.Abort(r)
		return nil
	}))
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		runnerkit.Enqueue(t, r, quick.With(nil))
		testkit.ErrorIs(t, r.Work(ctx, runner.WorkOptions{}), jobs.ErrShutdown)
		cancel()
	}
}

// TestAbortKillsWhileDatabaseIsLocked holds the write lock, so the worker waits
// in a write. Abort must kill the commands during this wait.
func TestAbortKillsWhileDatabaseIsLocked(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{BusyTimeout: 3 * time.Second})
	r.Register(commands.Handler(commands.Options{}))
	pidFile := filepath.Join(t.TempDir(), "pid")
	command := command.Command{Argv: []string{"sh", "-c", "trap '' TERM; echo $$ >\"$1\"; sleep 600", "x", pidFile}}
	task := runnerkit.Enqueue(t, r, jobs.Command(command))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx, runner.WorkOptions{}) }()
	var pid int
	for pid == 0 {
		time.Sleep(time.Millisecond) // the command writes its pid during these sleeps
		text, _ := os.ReadFile(pidFile)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	other, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	admin.Abort(r)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		process, err := os.FindProcess(pid)
		if err != nil || process.Signal(syscall.Signal(0)) != nil {
			t.Log("gone after", time.Since(began))
			break
		}
		if time.Since(began) > testkit.Patience {
			t.Fatalf("got a living command %v after Abort, want it killed", testkit.Patience)
		}
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	testkit.ErrorIs(t, <-done, jobs.ErrShutdown)
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Pending)
	testkit.Equal(t, "attempt", got.Attempt, 0)
}

// TestBusyWorkerFindsNewQueueOfAnotherProcess checks a worker whose slots are
// all in use. The worker claims from the queues that it knows, and looks for
// new queues from time to time.
func TestBusyWorkerFindsNewQueueOfAnotherProcess(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	other, err := runner.Open(t.Context(), admin.Path(r), runner.Options{Sync: runner.SyncNormal})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	job := jobs.Define[string]("work")
	many := make([]jobs.Spec, 20_000)
	for i := range many {
		many[i] = job.With("many", jobs.Queue("many"))
	}
	if _, err := r.EnqueueSeq(t.Context(), slices.Values(many)); err != nil {
		t.Fatal(err)
	}
	ran, found := 0, false
	r.Register(job.Handler(func(_ context.Context, what string) error {
		if ran++; ran == 100 {
			if _, err := other.Enqueue(t.Context(), job.With("one", jobs.Queue("another"))); err != nil {
				return err
			}
		}
		if what == "one" {
			found = true
			stop()
		}
		return nil
	}))
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "found the task of the other process", found, true)
	if ran >= len(many) {
		t.Errorf("got the task of the new queue after all %d tasks, want it earlier", ran)
	}
}

// TestUntilEmptyRunsTasksThatAnotherProcessAdds checks that UntilEmpty
// notices the commits of other processes, too.
func TestUntilEmptyRunsTasksThatAnotherProcessAdds(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	other, err := runner.Open(t.Context(), admin.Path(r), runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	first, second := jobs.Define[any]("first"), jobs.Define[any]("second")
	begun := make(chan struct{})
	r.Register(first.Handler(func(ctx context.Context, _ any) error {
		if _, err := other.Enqueue(ctx, second.With(nil)); err != nil {
			return err
		}
		at := time.Now()
		<-begun
		t.Log("begun after", time.Since(at))
		return nil
	}), second.Handler(func(context.Context, any) error { close(begun); return nil }))
	runnerkit.Enqueue(t, r, first.With(nil))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	testkit.NoError(t, r.Work(ctx, runner.WorkOptions{Concurrency: 2, UntilEmpty: true}))
	if ctx.Err() != nil {
		t.Errorf("got %v, want the end of both tasks before the deadline", ctx.Err())
	}
}

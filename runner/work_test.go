package runner_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type pair struct{ A, B int }

var add = jobs.DefineResult[pair, int]("add")

func TestFunctionRunsAndLeavesItsResult(t *testing.T) {
	r := open(t, runner.Options{})
	r.Register(add.Handler(func(_ context.Context, p pair) (int, error) { return p.A + p.B, nil }))
	task := enqueue(t, r, add.With(pair{2, 3}))
	drain(t, r)
	sum, err := add.Result(r.Await(t.Context(), task.ID))
	if err != nil || sum != 5 {
		t.Fatalf("got %+v, %v; want no error, sum = 5", sum, err)
	}
	if got := get(t, r, task.ID); got.State != jobs.Completed || got.Attempt != 1 || got.MaxAttempts != jobs.FuncAttempts ||
		got.FinishedAt.IsZero() {
		t.Errorf("got %+v; want State = Completed, Attempt = 1, MaxAttempts = FuncAttempts, not FinishedAt.IsZero()", got)
	}
}

func TestCommandRunsAndItsOutputIsKept(t *testing.T) {
	r := open(t, runner.Options{})
	r.Register(runner.Commands(runner.CommandOptions{}))
	task := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", `echo "hello $1"; cat; printf '{"n":1}' >"$RUNNER_RESULT"`, "x", "wörld"},
		Input: []byte("input")}.With())
	drain(t, r)
	if text := output(t, r, task.ID); text != "hello wörld\ninput" {
		t.Errorf("got %q, want %q", text, "hello wörld\ninput")
	}
	if got := get(t, r, task.ID); got.State != jobs.Completed || string(got.Result) != `{"n":1}` || got.ExitCode == nil ||
		*got.ExitCode != 0 {
		t.Errorf("got %+v; want State = Completed, string(Result) = `{\"n\":1}`, ExitCode != nil, *ExitCode = 0", got)
	}
}

func TestAttemptsAreRetriedWithTheirErrorsKept(t *testing.T) {
	r := open(t, runner.Options{})
	r.Register(runner.Commands(runner.CommandOptions{}))
	task := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", "exit 7"}}.With(jobs.MaxAttempts(3),
		jobs.Retry(jobs.Backoff{Strategy: jobs.Fixed})))
	drain(t, r)
	got := get(t, r, task.ID)
	if got.State != jobs.Failed || got.Reason != jobs.ReasonExit || got.Attempt != 3 || got.ExitCode == nil || *got.ExitCode != 7 {
		t.Fatalf("got %+v; want State = Failed, Reason = ReasonExit, Attempt = 3, ExitCode != nil, *ExitCode = 7", got)
	}
	attempts, err := r.Attempts(t.Context(), got)
	if err != nil || len(attempts) != 3 {
		t.Fatalf("got %+v, %v; want no error, len(attempts) = 3", attempts, err)
	}
	for i, a := range attempts {
		if a.Attempt != i+1 || a.Error != "exit status 7" || !a.Counted || a.State != jobs.Failed {
			t.Errorf(`got %+v; want Attempt = i+1, Error = "exit status 7", Counted, State = Failed`, a)
		}
	}
}

func TestPanicsAndGoexitFailTheAttempt(t *testing.T) {
	r := open(t, runner.Options{})
	boom := jobs.Define[json.RawMessage]("boom", jobs.MaxAttempts(1))
	r.Register(boom.Handler(func(context.Context, json.RawMessage) error { panic("kaput") }))
	task := enqueue(t, r, boom.With(nil))
	drain(t, r)
	if got := get(t, r, task.ID); got.Reason != jobs.ReasonPanic || !strings.Contains(got.Error, "kaput") ||
		!strings.Contains(got.Error, "work_test.go") {
		t.Errorf(`got %+v; want Reason = ReasonPanic, Contains(Error, "kaput"), Contains(Error, "work_test.go")`, got)
	}
}

func TestCancelStopsARunningCommand(t *testing.T) {
	r := open(t, runner.Options{})
	r.Register(runner.Commands(runner.CommandOptions{}))
	task := enqueue(t, r, jobs.Command{Argv: []string{"sleep", "60"}}.With())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx) }()
	err := r.Changes(t.Context(), func() (bool, error) { return get(t, r, task.ID).State == jobs.Running, nil })
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if moved, err := r.Cancel(t.Context(), []int64{task.ID}, runner.CancelOptions{Reason: "enough"}); err != nil ||
		moved[0].State != jobs.Running {
		t.Fatalf("got %+v, %v; want no error, moved[0].State = Running", moved, err)
	}
	got, err := r.Await(t.Context(), task.ID)
	if err != nil || got.State != jobs.Cancelled || !strings.Contains(got.Error, "enough") {
		t.Fatalf(`got %+v %v; want no error, got.State = Cancelled, Contains(got.Error, "enough")`, got, err)
	}
	t.Log("cancelled after", time.Since(began))
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestDrainGivesBackWhatDoesNotEnd(t *testing.T) {
	r := open(t, runner.Options{Grace: 10 * time.Millisecond})
	r.Register(runner.Commands(runner.CommandOptions{}))
	begun := filepath.Join(t.TempDir(), "begun")
	task := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", `touch "$0"; exec sleep 60`, begun}}.With())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx) }()
	testkit.Within(t, 30*time.Second, "the command", func() bool { _, err := os.Stat(begun); return err == nil })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := get(t, r, task.ID); got.State != jobs.Pending || got.Reason != jobs.ReasonShutdown || got.Attempt != 0 {
		t.Errorf("got %+v; want State = Pending, Reason = ReasonShutdown, Attempt = 0", got)
	}
}

// TestACommandThatAnswersTermWithExitZero checks a command that answers SIGTERM with exit status 0. If a stopping worker sent the signal,
// the task is completed. After a timeout or a cancel it is not.
func TestACommandThatAnswersTermWithExitZero(t *testing.T) {
	t.Parallel()
	script := `trap 'echo "\"saved\"" >"$RUNNER_RESULT"; exit 0' TERM; touch "$0"; while :; do sleep 0.01; done`
	shutdown := func(_ *testing.T, _ *runner.Runner, _ int64, stop func()) { stop() }
	cancel := func(t *testing.T, r *runner.Runner, id int64, stop func()) {
		if _, err := r.Cancel(t.Context(), []int64{id}, runner.CancelOptions{}); err != nil {
			t.Error(err)
		}
		until(t, r, func() bool { return get(t, r, id).State.Finished() })
		stop()
	}
	wait := func(t *testing.T, r *runner.Runner, id int64, stop func()) {
		until(t, r, func() bool { return get(t, r, id).State.Finished() })
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
			r := open(t, runner.Options{Grace: 10 * time.Millisecond})
			r.Register(runner.Commands(runner.CommandOptions{}))
			begun := filepath.Join(t.TempDir(), "begun")
			task := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", script, begun}}.With(test.options...))
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- r.Work(ctx) }()
			testkit.Within(t, 30*time.Second, "the command", func() bool { _, err := os.Stat(begun); return err == nil })
			test.end(t, r, task.ID, stop)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			got := get(t, r, task.ID)
			if got.State != test.state || got.Reason != test.reason {
				t.Errorf("got %s (%s): %s, want %s (%s)", got.State, got.Reason, got.Error, test.state, test.reason)
			}
			if result := string(got.Result); test.state == jobs.Completed && result != `"saved"` {
				t.Errorf("got result %q, want %q", result, `"saved"`)
			}
		})
	}
}

func TestAbortKills(t *testing.T) {
	r := open(t, runner.Options{})
	r.Register(runner.Commands(runner.CommandOptions{}))
	task := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", "trap '' TERM; sleep 60"}}.With())
	done := make(chan error, 1)
	go func() { done <- r.Work(t.Context()) }()
	if err := r.Changes(t.Context(), func() (bool, error) { return get(t, r, task.ID).State == jobs.Running, nil }); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.Abort()
	if err := <-done; !errors.Is(err, jobs.ErrShutdown) {
		t.Fatalf("got %v; want Is(err, ErrShutdown)", err)
	}
	t.Log("gone after", time.Since(began))
	if got := get(t, r, task.ID); got.State != jobs.Pending || got.Attempt != 0 {
		t.Errorf("got %+v; want State = Pending, Attempt = 0", got)
	}
}

// TestAbortKillsWhileTheDatabaseIsLocked holds the write lock, so that the loop waits in a write. Abort kills the commands all the same.
func TestAbortKillsWhileTheDatabaseIsLocked(t *testing.T) {
	r := open(t, runner.Options{BusyTimeout: 3 * time.Second})
	r.Register(runner.Commands(runner.CommandOptions{}))
	pidFile := filepath.Join(t.TempDir(), "pid")
	task := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", "trap '' TERM; echo $$ >\"$1\"; sleep 60", "x", pidFile}}.With())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx) }()
	var pid int
	for pid == 0 {
		time.Sleep(time.Millisecond) // so that another process can run
		text, _ := os.ReadFile(pidFile)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	other, err := sql.Open("sqlite", "file:"+r.Path()+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	r.Abort()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		process, err := os.FindProcess(pid)
		if err != nil || process.Signal(syscall.Signal(0)) != nil {
			t.Log("gone after", time.Since(began))
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("the command lives")
		}
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, jobs.ErrShutdown) {
		t.Fatalf("got %v; want Is(err, ErrShutdown)", err)
	}
	if got := get(t, r, task.ID); got.State != jobs.Pending || got.Attempt != 0 {
		t.Errorf("got %+v; want State = Pending, Attempt = 0", got)
	}
}

// TestAWorkerWithoutAFreeSlotFindsANewQueueOfAnotherProcess checks a worker whose slots are all taken. It claims from the queues that it
// knows, and looks for new queues at intervals.
func TestAWorkerWithoutAFreeSlotFindsANewQueueOfAnotherProcess(t *testing.T) {
	r := open(t, runner.Options{Sync: runner.Normal, Concurrency: 1})
	other, err := runner.Open(t.Context(), r.Path(), runner.Options{Sync: runner.Normal})
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
	if _, err := r.EnqueueAll(t.Context(), slices.Values(many)); err != nil {
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
	if err := r.Work(ctx); err != nil {
		t.Fatal(err)
	}
	if !found || ran >= len(many) {
		t.Errorf("found: %v, after %d tasks", found, ran)
	}
}

// TestWorkUntilEmptyRunsWhatAnotherProcessAddsMeanwhile checks that a worker that ends when no task is left also notices the commits of
// other processes.
func TestWorkUntilEmptyRunsWhatAnotherProcessAddsMeanwhile(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Concurrency: 2})
	other, err := runner.Open(t.Context(), r.Path(), runner.Options{})
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
	enqueue(t, r, first.With(nil))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.WorkUntilEmpty(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("got %v, %v; want no error, ctx.Err() = nil", err, ctx.Err())
	}
}

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// finishedVariable is an environment variable that makes the test program call
// ConsumeFinished. Its value is the path of a database and the point at which
// the program kills itself.
const finishedVariable = "RUNNER_TEST_FINISHED"

// ending is a job whose input says how its attempt ends.
var ending = jobs.Define[string]("ending", jobs.MaxAttempts(1), jobs.MaxLosses(0))

// registerEnding registers the function of the job "ending". For the input
// "last", the function calls die("running"). This call kills the program if the
// test wants that.
func registerEnding(r *runner.Runner, die func(at string)) {
	r.Register(ending.Handler(func(_ context.Context, how string) error {
		if how == "fail" {
			return errors.New("bad")
		}
		if how == "last" {
			die("running")
		}
		return nil
	}))
}

// recordEnds calls ConsumeFinished with a function that appends a line for each
// finished task to a file. For task 2, the function calls die("handling")
// before it writes the line, and die("handled") after it. Each call kills the
// program if the test wants that.
func recordEnds(ctx context.Context, r *runner.Runner, die func(at string)) error {
	file, err := os.OpenFile(admin.Path(r)+".ends", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.ConsumeFinished(ctx, "audit", func(_ context.Context, task jobs.Task) error {
		if task.ID == 2 {
			die("handling")
		}
		if _, err := fmt.Fprintln(file, task.ID, task.State, task.Reason); err != nil {
			return err
		}
		if task.ID == 2 {
			die("handled")
		}
		return nil
	})
}

// finishedProgram adds tasks and runs them. Then it calls recordEnds.
func finishedProgram(path string, how []string) error {
	ctx := context.Background()
	r, err := runner.Open(ctx, path, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	die := func(at string) {
		if self, err := os.FindProcess(os.Getpid()); at == how[0] && (err != nil || self.Kill() != nil) {
			panic("cannot kill myself")
		} else if at == how[0] {
			select {}
		}
	}
	registerEnding(r, die)
	if err := admin.AddCursor(ctx, r, "audit"); err != nil {
		return err
	}
	for _, spec := range []jobs.Spec{ending.With("ok"), ending.With("fail"), ending.With("ok", jobs.DependsOn(2)), ending.With("last")} {
		if _, err := r.Enqueue(ctx, spec); err != nil {
			return err
		}
	}
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		return err
	}
	die("ended")
	return recordEnds(ctx, r, die)
}

// TestKilledConsumerMissesNoEnd kills a program before ConsumeFinished has
// called handle for all finished tasks. In the next program, ConsumeFinished
// continues in order and misses no task. It calls handle a second time only for
// the task whose line handle had already written when the program was killed.
func TestKilledConsumerMissesNoEnd(t *testing.T) {
	const first, middle, last = "1 completed \n", "2 failed error\n3 cancelled dependency\n", "4 completed \n"
	for point, want := range map[string]string{
		"running":  first + middle + "4 failed lost\n", // killed while task 4 runs, before the first call of handle
		"ended":    first + middle + last,
		"handling": first + middle + last,
		"handled":  first + "2 failed error\n" + middle + last,
	} {
		t.Run(point, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			self, err := os.Executable()
			testkit.NoError(t, err)
			program := exec.Command(self)
			program.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", finishedVariable, path, point), "GORACE=atexit_sleep_ms=0")
			text, err := program.CombinedOutput()
			if program.ProcessState.Exited() {
				t.Fatalf("got a program that ended by itself (%v), want it killed at point %q: %s", err, point, text)
			}
			killed := time.Now()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(killed) + 2*time.Minute) // wait until the leases of the killed program have expired
				r, err := runner.Open(db.Alone(t.Context()), path, runner.Options{})
				testkit.NoError(t, err)
				defer r.Close()
				registerEnding(r, func(string) {})
				testkit.NoError(t, r.Work(t.Context(), runner.WorkOptions{UntilEmpty: true}))
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- recordEnds(ctx, r, func(string) {}) }()
				synctest.Wait()
				stop()
				testkit.ErrorIs(t, <-done, context.Canceled)
			})
			got := string(testkit.ReadFile(t, path+".ends"))
			testkit.Equal(t, "ends", got, want)
		})
	}
}

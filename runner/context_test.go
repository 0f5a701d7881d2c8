package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestLoggerWritesToOutputOfItsTask(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		log := runner.Logger(ctx)
		log.Debug("too small")
		log.Info("resized", "photo", 7, slog.Group("size", "time", "now"))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { runner.Logger(ctx).Warn("slow") })
		}
		group.Wait()
		return nil
	}))
	task := runnerkit.Enqueue(t, r, quick.With(nil))
	runnerkit.Drain(t, r)
	task = runnerkit.Get(t, r, task.ID)
	want := "level=INFO msg=resized photo=7 size.time=now\n" + strings.Repeat("level=WARN msg=slow\n", 4)
	testkit.Equal(t, "output", runnerkit.Output(t, r, task.ID), want)
	testkit.Equal(t, "output bytes", task.OutputBytes, int64(len(want)))
	testkit.Equal(t, "logger outside of an attempt", runner.Logger(t.Context()), slog.Default())
}

func TestLogLineAfterEndOfAttemptIsDropped(t *testing.T) {
	for name, during := range map[string]bool{"without earlier output": false, "with earlier output": true} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			r := runnerkit.Open(t, runner.Options{})
			var late *slog.Logger
			r.Register(quick.Handler(func(ctx context.Context, _ any) error {
				if late = runner.Logger(ctx); during {
					late.Info("in time")
				}
				return nil
			}))
			task := runnerkit.Enqueue(t, r, quick.With(nil))
			runnerkit.Drain(t, r)
			late.Info("too late")
			want := map[bool]string{true: "level=INFO msg=\"in time\"\n"}[during]
			testkit.Equal(t, "output", runnerkit.Output(t, r, task.ID), want)
			testkit.NoError(t, r.Close())
			goleak.VerifyNone(t, before)
		})
	}
}

func TestLogOutputIsCutAtOutputLimit(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		for i := range 1000 {
			runner.Logger(ctx).Info(fmt.Sprint("line ", i))
		}
		return nil
	}))
	task := runnerkit.Enqueue(t, r, quick.With(nil, func(s *jobs.Spec) { s.OutputLimit = 1000 }))
	runnerkit.Drain(t, r)
	task = runnerkit.Get(t, r, task.ID)
	got := runnerkit.Output(t, r, task.ID)
	testkit.Equal(t, "bytes of the output", len(got), 1000)
	testkit.Equal(t, "output truncated", task.OutputTruncated, true)
	testkit.Contains(t, got, "line 0\"")
	if !strings.HasSuffix(got, "line 999\"\n") {
		t.Errorf("got an output that ends with %q, want it to end with line 999", got[max(0, len(got)-40):])
	}
}

func TestMiddlewareWrapsEveryExecution(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	var trace []string
	around := func(name string) runner.Middleware {
		return func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (
			json.RawMessage, error) {
			trace = append(trace, name)
			result, err := next(context.WithValue(ctx, traceKey{}, name), task)
			trace = append(trace, fmt.Sprint(name, " ", string(result), err))
			return result, err
		}
	}
	r.Use(around("outer"))
	r.Register(double.Handler(func(ctx context.Context, n int) (int, error) {
		trace = append(trace, fmt.Sprint("called in ", ctx.Value(traceKey{})))
		return 2 * n, nil
	}))
	r.Use(around("inner"))
	task := runnerkit.Enqueue(t, r, double.With(21))
	runnerkit.Drain(t, r)
	got, err := double.Result(r.Await(t.Context(), task.ID))
	testkit.NoError(t, err)
	testkit.Equal(t, "result", got, 42)
	if got := strings.Join(trace, ", "); got != "outer, inner, called in inner, inner 42<nil>, outer 42<nil>" {
		t.Errorf("got %q, want %q", got, "outer, inner, called in inner, inner 42<nil>, outer 42<nil>")
	}
}

type traceKey struct{}

var double = jobs.DefineResult[int, int]("double")

func TestMiddlewareLogsToOutputOfCommand(t *testing.T) {
	var mu sync.Mutex // guards the variable tee, because the readers of stdout and stderr call Tee at the same time
	var tee strings.Builder
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{Tee: func(_ jobs.Task, _ string, data []byte) {
		mu.Lock()
		defer mu.Unlock()
		tee.Write(data)
	}}))
	r.Use(func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (json.RawMessage,
		error) {
		runner.Logger(ctx).Info("before")
		result, err := next(ctx, task)
		runner.Logger(ctx).Info("after")
		return result, err
	})
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"echo", "hello"}}))
	runnerkit.Drain(t, r)
	testkit.Equal(t, "output", runnerkit.Output(t, r, task.ID), "level=INFO msg=before\nhello\nlevel=INFO msg=after\n")
	testkit.Equal(t, "text that Tee received", tee.String(), "hello\n")
}

func TestTeeThatPanicsLosesNoOutput(t *testing.T) {
	for _, fail := range ends {
		var log safeBuffer
		r := runnerkit.Open(t, runner.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		r.Register(commands.Handler(commands.Options{Tee: func(jobs.Task, string, []byte) { fail() }}))
		task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"echo", "hello"}}))
		runnerkit.Drain(t, r)
		testkit.Equal(t, "output", runnerkit.Output(t, r, task.ID), "hello\n")
		testkit.Contains(t, log.String(), "the function Tee does not return")
	}
}

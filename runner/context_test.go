package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func TestLoggerWritesToTheOutputOfItsTask(t *testing.T) {
	r := open(t, runner.Options{})
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
	task := enqueue(t, r, quick.With(nil))
	drain(t, r)
	task = get(t, r, task.ID)
	want := "level=INFO msg=resized photo=7 size.time=now\n" + strings.Repeat("level=WARN msg=slow\n", 4)
	if got := output(t, r, task.ID); got != want || task.OutputBytes != int64(len(want)) {
		t.Errorf("%d bytes: %s", task.OutputBytes, got)
	}
	if runner.Logger(t.Context()) != slog.Default() {
		t.Error("outside of an attempt it is another logger than slog's")
	}
}

func TestWhatIsLoggedUnderAnOutputLimit(t *testing.T) {
	r := open(t, runner.Options{})
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		for i := range 1000 {
			runner.Logger(ctx).Info(fmt.Sprint("line ", i))
		}
		return nil
	}))
	task := enqueue(t, r, quick.With(nil, jobs.OutputLimit(1000)))
	drain(t, r)
	task = get(t, r, task.ID)
	got := output(t, r, task.ID)
	if len(got) != 1000 || !task.OutputTruncated || !strings.Contains(got, "line 0\"") || !strings.HasSuffix(got, "line 999\"\n") {
		t.Errorf("%d bytes kept, truncated %t", len(got), task.OutputTruncated)
	}
}

func TestMiddlewareIsAroundEveryExecution(t *testing.T) {
	r := open(t, runner.Options{})
	var trace []string
	around := func(name string) runner.Middleware {
		return func(ctx context.Context, task jobs.Task, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
			trace = append(trace, name)
			result, err := next(context.WithValue(ctx, traceKey{}, name))
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
	task := enqueue(t, r, double.With(21))
	drain(t, r)
	if got, err := double.Result(r.Await(t.Context(), task.ID)); err != nil || got != 42 {
		t.Errorf("got %+v, %v; want no error, got = 42", got, err)
	}
	if got := strings.Join(trace, ", "); got != "outer, inner, called in inner, inner 42<nil>, outer 42<nil>" {
		t.Errorf("got %q, want %q", got, "outer, inner, called in inner, inner 42<nil>, outer 42<nil>")
	}
}

type traceKey struct{}

var double = jobs.DefineResult[int, int]("double")

func TestMiddlewareCanLogBesideACommand(t *testing.T) {
	var mu sync.Mutex // both streams call Tee at the same time
	var tee strings.Builder
	r := open(t, runner.Options{})
	r.Register(runner.Commands(runner.CommandOptions{Tee: func(_ jobs.Task, _ string, data []byte) {
		mu.Lock()
		defer mu.Unlock()
		tee.Write(data)
	}}))
	r.Use(func(ctx context.Context, _ jobs.Task, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
		runner.Logger(ctx).Info("before")
		result, err := next(ctx)
		runner.Logger(ctx).Info("after")
		return result, err
	})
	task := enqueue(t, r, jobs.Command{Argv: []string{"echo", "hello"}}.With())
	drain(t, r)
	if got := output(t, r, task.ID); got != "level=INFO msg=before\nhello\nlevel=INFO msg=after\n" || tee.String() != "hello\n" {
		t.Errorf("output %q, tee %q", got, tee.String())
	}
}

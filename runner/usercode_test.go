package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// These tests walk all places where a worker calls code of the program on a
// goroutine, or in a transaction, that others need. Code that panics, or that
// ends its goroutine, must end neither the process nor the worker.

// httpError is an error whose methods don't expect a nil pointer.
type httpError struct{ status int }

func (e *httpError) Error() string { return fmt.Sprint("status ", e.status) }

// badError is an error with one method that does not return.
type badError struct {
	method string
	fail   func()
}

func (e badError) in(method string) {
	if e.method == method {
		e.fail()
	}
}

func (e badError) Error() string                { e.in("Error"); return "bad" }
func (e badError) Unwrap() error                { e.in("Unwrap"); return nil }
func (e badError) Is(error) bool                { e.in("Is"); return false }
func (e badError) As(any) bool                  { e.in("As"); return false }
func (e badError) LogValue() slog.Value         { e.in("LogValue"); return slog.StringValue("bad") }
func (e badError) String() string               { e.in("String"); return "bad" }
func (e badError) RetryIn() time.Duration       { e.in("RetryIn"); return 0 }
func (e badError) MarshalJSON() ([]byte, error) { e.in("MarshalJSON"); return []byte("1"), nil }
func (e *badError) UnmarshalJSON([]byte) error  { explode(); return nil }

func explode() { panic("boom") }

// ends are the two ways in which code does not return.
var ends = map[string]func(){"panic": explode, "goexit": runtime.Goexit}

// safeBuffer collects a log that several goroutines write.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func TestErrorThatPanicsFailsItsAttemptOnly(t *testing.T) {
	errs := map[string]error{
		"nil error":                       (*httpError)(nil),
		"nil error in Fail":               jobs.Fail((*httpError)(nil)),
		"nil AttemptError":                (*taskspec.AttemptError)(nil),
		"an error that can't be compared": badError{method: "RetryIn", fail: explode},
	}
	for _, method := range []string{"Error", "Unwrap", "Is", "As"} {
		for end, fail := range ends {
			errs[end+" in "+method] = &badError{method, fail}
		}
	}
	var log safeBuffer
	r := runnerkit.Open(t, runner.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	single := jobs.Define[string]("single", jobs.MaxAttempts(1))
	many := jobs.Define[string]("many", jobs.MaxAttempts(1))
	r.Register(single.Handler(func(_ context.Context, name string) error { return errs[name] }),
		many.BulkHandler(2, func(_ context.Context, tasks []jobs.BulkTask[string]) error {
			for _, task := range tasks {
				task.End(errs[task.Input])
			}
			return nil
		}))
	want := map[int64]string{}
	for name := range errs {
		for _, job := range []jobs.Func[string]{single, many} {
			want[runnerkit.Enqueue(t, r, job.With(name)).ID] = name
		}
	}
	runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 2})
	for id, name := range want {
		task := runnerkit.Get(t, r, id)
		testkit.Equal(t, name+": state", task.State, jobs.Failed)
		reason := jobs.ReasonPanic
		if strings.HasSuffix(name, " Is") { // nothing of the outcome depends on this method
			reason = jobs.ReasonError
		}
		testkit.Equal(t, name+": reason", task.Reason, reason)
		testkit.Equal(t, name+": losses", task.Losses, 0)
	}
	for name, text := range map[string]string{
		"nil error": "the handler returned an error of type *runner_test.httpError and its methods do not return: panic:",
		"panic in Unwrap": "the handler returned an error of type *runner_test.badError and its methods do not return: panic: boom\n\n" +
			"example.com/runner/runner_test.explode()",
		"goexit in Error": "the handler returned an error of type *runner_test.badError and its methods do not return: the function ended",
	} {
		for id, of := range want {
			if task := runnerkit.Get(t, r, id); of == name && !strings.HasPrefix(task.Error, text) {
				t.Errorf("%s: got the error %s, want %s", name, task.Error, text)
			}
		}
	}
	testkit.Contains(t, log.String(), `err="the handler returned an error of type *runner_test.httpError and its methods`,
		`stack="example.com/runner/runner_test.(*httpError).Error(`)
}

func TestHandlerThatPanicsHasItsStackInLog(t *testing.T) {
	for name, run := range map[string]func() error{
		"a panic":                  func() error { explode(); return nil },
		"a panic with an error":    func() error { panic(badError{"Error", explode}) },
		"a value that ends itself": func() error { panic(badError{"Error", runtime.Goexit}) },
	} {
		var log safeBuffer
		r := runnerkit.Open(t, runner.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		r.Register(quick.Handler(func(context.Context, any) error { return run() }))
		task := runnerkit.Enqueue(t, r, quick.With(nil, jobs.MaxAttempts(1)))
		runnerkit.Drain(t, r)
		testkit.Equal(t, name+": reason", runnerkit.Get(t, r, task.ID).Reason, jobs.ReasonPanic)
		testkit.Contains(t, log.String(), "stack=", "usercode_test.go:")
	}
}

// TestResultThatPanicsFailsItsTaskOnly encodes the results of a batch.
func TestResultThatPanicsFailsItsTaskOnly(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	job := jobs.DefineResult[string, badError]("results", jobs.MaxAttempts(1))
	r.Register(job.BulkHandler(3, func(_ context.Context, tasks []jobs.BulkTask[string]) ([]badError, error) {
		results := make([]badError, len(tasks))
		for i, task := range tasks {
			results[i] = badError{"MarshalJSON", ends[task.Input]}
			if task.Input == "" {
				results[i].method = ""
			}
		}
		return results, nil
	}))
	for _, input := range []string{"panic", "", "goexit"} {
		runnerkit.Enqueue(t, r, job.With(input))
	}
	runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 1})
	for id, want := range []jobs.State{jobs.Failed, jobs.Completed, jobs.Failed} {
		testkit.Equal(t, "state", runnerkit.Get(t, r, int64(id+1)).State, want)
	}
}

// TestProgramsFunctionsDoNotEndWorker lets each function that Work or
// ConsumeFinished calls beside a handler fail, and then runs a task.
func TestProgramsFunctionsDoNotEndWorker(t *testing.T) {
	for name, test := range functions() {
		for end, fail := range ends {
			t.Run(name+"/"+end, func(t *testing.T) { test.run(t, fail) })
		}
	}
}

// function is a function of the program that Work or ConsumeFinished calls.
type function struct {
	set  func(t *testing.T, r *runner.Runner, fail func()) // nil for Liveness
	log  string
	tick bool // whether it is called at the tick of a schedule
}

func functions() map[string]function {
	noOne := jobs.Schedule{Name: "s", Cron: "@every 10s", Spec: quick.With(nil)}
	return map[string]function{
		"middleware at a tick": {func(t *testing.T, r *runner.Runner, fail func()) {
			testkit.NoError(t, r.SetSchedule(t.Context(), noOne))
			r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) error {
				if spec.Schedule != "" {
					fail()
				}
				return nil
			})
		}, "the middleware of UseEnqueue: ", true},
		"an error of middleware at a tick": {func(t *testing.T, r *runner.Runner, fail func()) {
			testkit.NoError(t, r.SetSchedule(t.Context(), noOne))
			r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) error {
				if spec.Schedule != "" {
					return badError{"Is", fail}
				}
				return nil
			})
		}, "err=bad", true},
		"a nil error of middleware at a tick": {func(t *testing.T, r *runner.Runner, _ func()) {
			testkit.NoError(t, r.SetSchedule(t.Context(), noOne))
			r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) error {
				if spec.Schedule != "" {
					return (*httpError)(nil)
				}
				return nil
			})
		}, "the middleware of UseEnqueue returned an error of type *runner_test.httpError and its methods do not return", true},
		"OnTick": {func(t *testing.T, r *runner.Runner, fail func()) {
			onTick(t, r, noOne, func() (jobs.Spec, error) { fail(); return jobs.Spec{}, nil })
		}, "the function of schedule s: ", true},
		"OnTick without a Spec": {func(t *testing.T, r *runner.Runner, _ func()) {
			onTick(t, r, noOne, func() (jobs.Spec, error) { return jobs.Spec{}, nil })
		}, "the function of schedule s: job: ", true},
		"an error of OnTick": {func(t *testing.T, r *runner.Runner, fail func()) {
			onTick(t, r, noOne, func() (jobs.Spec, error) { return jobs.Spec{}, badError{"Unwrap", fail} })
		}, "the function of schedule s: bad", true},
		"Liveness": {nil, "the function Liveness does not return", false},
		"ConsumeFinished": {func(t *testing.T, r *runner.Runner, fail func()) {
			finished(t, r, func() error { fail(); return nil })
		}, "a handler of ends failed", false},
		"an error of ConsumeFinished": {func(t *testing.T, r *runner.Runner, fail func()) {
			finished(t, r, func() error { return badError{"Error", fail} })
		}, "the function handle returned an error of type runner_test.badError and its methods do not return", false},
	}
}

func onTick(t *testing.T, r *runner.Runner, s jobs.Schedule, function func() (jobs.Spec, error)) {
	t.Helper()
	testkit.NoError(t, r.OnTick(t.Context(), s, func(context.Context, time.Time, jobs.Spec) (jobs.Spec, error) { return function() }))
}

func (f function) run(t *testing.T, fail func()) {
	var log safeBuffer
	o := runner.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	work := runner.WorkOptions{Concurrency: 1}
	if f.set == nil {
		work.Liveness = func(int, bool) { fail() }
	}
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(quick.Handler(runs))
		if f.set != nil {
			f.set(t, r, fail)
		}
		stop := runnerkit.Work(t, r, work)
		time.Sleep(11 * time.Second)
		task, err := r.Enqueue(t.Context(), quick.With(nil))
		testkit.NoError(t, err)
		task, err = r.Await(t.Context(), task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", task.State, jobs.Completed)
		time.Sleep(3 * time.Second)
		stop()
		testkit.Contains(t, log.String(), f.log)
		if n, _, err := r.Count(t.Context(), jobs.Filter{}); f.tick && n != 1 || err != nil {
			t.Errorf("got %d tasks, %v; want none of the schedule", n, err)
		}
	}, o)
}

func runs(context.Context, any) error { return nil }

// finished calls ConsumeFinished until the end of the test.
func finished(t *testing.T, r *runner.Runner, handle func() error) {
	testkit.NoError(t, admin.AddCursor(t.Context(), r, "c"))
	go func() {
		_ = r.ConsumeFinished(t.Context(), "c", func(context.Context, jobs.Task) error { return handle() })
	}()
}

// brokenLog is the handler of a logger with a method that panics.
type brokenLog struct{ method string }

func (b brokenLog) in(method string) {
	if b.method == method {
		explode()
	}
}

func (b brokenLog) Enabled(context.Context, slog.Level) bool  { b.in("Enabled"); return true }
func (b brokenLog) Handle(context.Context, slog.Record) error { b.in("Handle"); return nil }
func (b brokenLog) WithAttrs([]slog.Attr) slog.Handler        { b.in("WithAttrs"); return b }
func (b brokenLog) WithGroup(string) slog.Handler             { b.in("WithGroup"); return b }

func TestBrokenLogDoesNotEndWorker(t *testing.T) {
	for _, method := range []string{"Enabled", "Handle", "WithAttrs", "WithGroup"} {
		r := runnerkit.Open(t, runner.Options{Log: slog.New(brokenLog{method})})
		r.Register(quick.Handler(func(ctx context.Context, _ any) error {
			runner.Logger(ctx).With("a", 1).WithGroup("g").Info("ran")
			return nil
		}))
		task := runnerkit.Enqueue(t, r, quick.With(nil))
		runnerkit.Drain(t, r)
		testkit.Equal(t, method+": state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
	}
}

// TestOwnCallsReturnProgramsErrors checks the calls that run code of the
// program on the caller's own goroutine or for it: the caller gets the error
// itself or the panic, and other callers go on.
func TestOwnCallsReturnProgramsErrors(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	var refuse error
	r.UseEnqueue(func(context.Context, *jobs.Spec) error { return refuse })
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "s", Cron: "@yearly", Spec: quick.With(nil)}))
	for _, method := range []string{"Error", "Unwrap", "Is", "As"} {
		for _, fail := range ends {
			refuse = &badError{method, fail}
			_, err := r.EnqueueSeq(t.Context(), slices.Values([]jobs.Spec{quick.With(nil)}))
			if bad, ok := err.(*runner.SpecError); !ok || bad.Err != refuse { //nolint:errorlint // its methods do not return
				t.Errorf("EnqueueSeq with a bad %s: got another error, want that of the middleware", method)
			}
			if _, err = admin.RunSchedule(t.Context(), r, "s"); err != refuse { //nolint:errorlint // its methods do not return
				t.Errorf("RunSchedule with a bad %s: got another error, want that of the middleware", method)
			}
		}
	}
	refuse = nil
	r.UseEnqueue(func(context.Context, *jobs.Spec) error { explode(); return nil })
	_, err := admin.RunSchedule(t.Context(), r, "s")
	testkit.ErrorContains(t, err, "the middleware of UseEnqueue: panic: boom")
	n, _, err := r.Count(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", n, 0)
	if errors.Is(err, jobs.ErrClosed) {
		t.Error("closed")
	}
}

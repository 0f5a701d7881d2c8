package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/exec"
)

// The functions of this file take the context of a handler, and act on the
// attempt that the handler runs. Package runner documents the exported
// functions.

type attemptKey struct{}

// attemptFrom returns the attempt whose handler has the context ctx. It returns
// nil outside of an attempt.
func attemptFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// Current returns the task that the handler with the context ctx runs, in the
// state it had when the worker claimed it, and Options.Owner of its worker. It
// returns false outside of an attempt.
func Current(ctx context.Context) (task jobs.Task, owner any, ok bool) {
	if a := attemptFrom(ctx); a != nil {
		return a.task, a.e.o.Owner, true
	}
	return jobs.Task{}, nil, false
}

// Logger returns a logger that writes to the output of the task that the
// handler with the context ctx runs. Outside of an attempt it returns
// slog.Default.
func Logger(ctx context.Context) *slog.Logger {
	a := attemptFrom(ctx)
	if a == nil {
		return slog.Default()
	}

	withoutTime := func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}
	return slog.New(slog.NewTextHandler(stream{a, "stderr"}, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
}

// stream is an io.Writer to the output of a function's attempt.
type stream struct {
	a    *attempt
	name string
}

func (s stream) Write(data []byte) (int, error) {
	s.a.capture().Write(s.name, data)
	return len(data), nil
}

// noOutput is the output of all attempts that have ended without output. It
// drops all data that goroutines of such an attempt still write.
var noOutput = exec.ClosedCapture()

// closeOutput ends the output of the attempt. Goroutines of the attempt may
// still write; the output drops their data.
func (a *attempt) closeOutput() {
	if !a.output.CompareAndSwap(nil, noOutput) {
		a.output.Load().Close()
	}
}

// capture returns the Capture of the attempt's output.
func (a *attempt) capture() *exec.Capture {
	if c := a.output.Load(); c != nil {
		return c
	}
	// does nothing if another goroutine has set a.output in the meantime
	a.output.CompareAndSwap(nil, exec.NewCapture(a.task, a.e.worker, a.e.log))
	return a.output.Load()
}

// Upstream returns the tasks that a task has waited for. It is the task of the
// handler with the context ctx.
func Upstream(ctx context.Context) ([]jobs.Task, error) {
	a := attemptFrom(ctx)
	if a == nil {
		return nil, fmt.Errorf("%w: Upstream is for the context of a running task", jobs.ErrInvalid)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !a.task.Depends {
		return nil, nil
	}

	var tasks []jobs.Task
	err := a.e.store.Upstream(ctx, a.task.ID, func(t jobs.Task) error { tasks = append(tasks, t); return nil })
	return tasks, err
}

// Outlive returns a context that ends d after ctx, with the same cause. cancel
// ends it early.
func Outlive(ctx context.Context, d time.Duration) (longer context.Context, cancel context.CancelFunc) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			end(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		end(nil)
	}
}

package runner

import (
	"context"
	"log/slog"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// The functions of this file take the context that a handler gets. They act on
// the attempt that the handler runs.

// TaskFromContext returns the task that the handler with the context ctx runs,
// in the state it had when the worker claimed it. It returns false outside of a
// handler.
func TaskFromContext(ctx context.Context) (jobs.Task, bool) {
	task, _, ok := engine.Current(ctx)
	return task, ok
}

// FromContext returns the Runner that called the handler with the context ctx.
// With it, a handler can enqueue tasks and read the database without a global
// variable for the Runner. FromContext returns false outside of a handler. The
// handler must not call Close or Work of this Runner.
func FromContext(ctx context.Context) (*Runner, bool) {
	_, owner, _ := engine.Current(ctx)
	r, ok := owner.(*Runner)
	return r, ok
}

// Logger returns a logger for the handler with the context ctx. It writes to
// the output of the task, which `runner logs` shows. Each record of level info
// or higher is a line on stderr, in slog's text format. Records carry no time,
// because each piece of output has a time. The worker keeps the output up to
// the task's output limit, and writes it to the database every 100 ms while the
// attempt runs. Records after the end of the attempt are dropped. Outside of an
// attempt Logger returns slog.Default. It is safe for use by many goroutines.
func Logger(ctx context.Context) *slog.Logger { return engine.Logger(ctx) }

// Progress reports how far the attempt that runs with ctx has come. The amounts
// done and total are in any unit. A total of 0 or less means that the total is
// unknown. A text of more than 200 bytes is cut. The last report appears in the
// task's Progress and in lists within half a second. The report stays there
// after the attempt, until the next attempt begins. A report after FinishTx is
// dropped, so report before it.
//
// A function can call Progress in every iteration of a loop, because the worker
// writes the reports of all its tasks together, twice a second. Progress is
// safe for use by many goroutines, returns at once, and does nothing outside of
// an attempt.
func Progress(ctx context.Context, done, total int64, text string) {
	engine.Progress(ctx, done, total, text)
}

// Upstream returns the tasks that the current task has waited for
// (jobs.DependsOn, jobs.DependsOnAny), in the order of their ids, with their
// states and results; ResultFunc.Result decodes a result. ctx is the handler's
// context. Tasks that were deleted in the meantime are missing. Outside of an
// attempt the error is of kind jobs.ErrInvalid.
func Upstream(ctx context.Context) ([]jobs.Task, error) { return engine.Upstream(ctx) }

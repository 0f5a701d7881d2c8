package runner

import (
	"context"
	"log/slog"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// The functions of this file read from, and write to, the attempt that runs with a context.

// TaskFrom returns the task whose attempt runs with ctx, as it was claimed. It returns false outside of an attempt.
func TaskFrom(ctx context.Context) (jobs.Task, bool) { return engine.TaskFrom(ctx) }

// Logger returns a logger that writes to the output of the task whose attempt runs with ctx, which `runner logs` shows. Each record from
// level info on is a line on stderr, in slog's text format. Records carry no time, because each piece of output has a time. The output is
// kept up to the task's output limit, and written to the database every 100 ms while the attempt runs. Records after the end of the attempt
// are dropped. Outside of an attempt Logger returns slog.Default. It is safe for use by many goroutines.
func Logger(ctx context.Context) *slog.Logger { return engine.Logger(ctx) }

// Progress reports how far the attempt that runs with ctx has come: done of total, in any unit, and a text. A total of 0 or less is
// unknown. A text of more than jobs.MaxText bytes is cut. The last report appears in the task's Progress and in lists within half a second.
// It stays there after the attempt, until the next attempt begins.
//
// A function can call Progress in every iteration of a loop, because the reports of all tasks of this process are written together twice a
// second. Progress is safe for use by many goroutines, returns at once, and does nothing outside of an attempt.
func Progress(ctx context.Context, done, total int64, text string) {
	engine.Progress(ctx, done, total, text)
}

// Upstream returns the tasks that the task running with ctx waited for (jobs.After, jobs.AfterAny), by id, with their states and results.
// The method Result of a ResultFunc reads a result. Tasks that were deleted since are missing. Outside of an attempt the error is of kind
// jobs.ErrInvalid.
func Upstream(ctx context.Context) ([]jobs.Task, error) { return engine.Upstream(ctx) }

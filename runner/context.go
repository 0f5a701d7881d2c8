package runner

import (
	"context"
	"log/slog"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// This file has what a function can ask of the context that it is called with.

// TaskFrom returns the task whose attempt runs with ctx, as it was when it was claimed; false outside of one.
func TaskFrom(ctx context.Context) (jobs.Task, bool) { return engine.TaskFrom(ctx) }

// Logger returns a logger that writes to the output of the task whose attempt runs with ctx: what `runner logs` shows, on stderr, a
// line of slog's text format for each record from level info on. The records carry no time, since each piece of output has its own.
// Output is kept up to the task's output limit, and written to the file every 100 ms while the attempt runs. What is logged after the
// end of the attempt is dropped. Outside of an attempt it is slog.Default. It is safe for use by many goroutines, and costs nothing
// until it is called.
func Logger(ctx context.Context) *slog.Logger { return engine.Logger(ctx) }

// Progress reports how far the attempt that runs with ctx has come: done of total, in whatever unit, and a text of at most
// jobs.MaxText bytes, which is cut if it is longer. A total of 0 or less is not known; an empty text is none. The last report is in
// the task's Progress and in lists within half a second, and stays there when the attempt has ended, until the next one begins. It is
// cheap enough for every turn of a loop: reports of all tasks of this process are written together twice a second. It is safe for use
// by many goroutines, returns at once, and does nothing outside of an attempt.
func Progress(ctx context.Context, done, total int64, text string) {
	engine.Progress(ctx, done, total, text)
}

// Upstream returns the tasks that the task running with ctx waited for (jobs.After, jobs.AfterAny), by id, with their states and
// results: f.Result(task, nil) of a ResultFunc reads one. Those that were deleted since are missing. Outside of a running task it
// is an error of kind jobs.ErrInvalid.
func Upstream(ctx context.Context) ([]jobs.Task, error) { return engine.Upstream(ctx) }

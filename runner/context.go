package runner

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/exec"
)

// What a function can ask of the context that it is called with.

type attemptKey struct{}

func attemptFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// TaskFrom returns the task whose attempt runs with ctx, as it was when it was claimed; false outside of one.
func TaskFrom(ctx context.Context) (jobs.Task, bool) {
	if a := attemptFrom(ctx); a != nil {
		return a.task, true
	}
	return jobs.Task{}, false
}

// Logger returns a logger that writes to the output of the task whose attempt runs with ctx: what `runner logs` shows, on stderr, a
// line of slog's text format for each record from level info on. The records carry no time, since each piece of output has its own.
// Output is kept up to the task's output limit, and written to the file every 100 ms while the attempt runs. What is logged after the
// end of the attempt is dropped. Outside of an attempt it is slog.Default. It is safe for use by many goroutines, and costs nothing
// until it is called.
func Logger(ctx context.Context) *slog.Logger {
	a := attemptFrom(ctx)
	if a == nil {
		return slog.Default()
	}
	return slog.New(slog.NewTextHandler(stream{a, "stderr"}, &slog.HandlerOptions{ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}}))
}

// stream writes to the output of an attempt of a function.
type stream struct {
	a    *attempt
	name string
}

func (s stream) Write(data []byte) (int, error) {
	s.a.printed().Write(s.name, data)
	return len(data), nil
}

// printed returns what collects the output of the attempt.
func (a *attempt) printed() *exec.Capture {
	if c := a.output.Load(); c != nil {
		return c
	}
	a.output.CompareAndSwap(nil, exec.NewCapture(a.task, a.e.worker, a.e.log)) // another goroutine may have been quicker
	return a.output.Load()
}

// Progress reports how far the attempt that runs with ctx has come: done of total, in whatever unit, and a text of at most
// jobs.MaxText bytes, which is cut if it is longer. A total of 0 or less is not known; an empty text is none. The last report is in
// the task's Progress and in lists within half a second, and stays there when the attempt has ended, until the next one begins. It is
// cheap enough for every turn of a loop: reports of all tasks of this process are written together twice a second. It is safe for use
// by many goroutines, returns at once, and does nothing outside of an attempt.
func Progress(ctx context.Context, done, total int64, text string) {
	a := attemptFrom(ctx)
	if a == nil || a.over.Load() {
		return
	}
	report := &jobs.Progress{Done: done, Text: cut(text, jobs.MaxText)}
	if total > 0 {
		report.Total = total
	}
	a.report.Store(report)
	if a.toReport.CompareAndSwap(false, true) { // else whoever stores the one before stores this one
		a.e.toReport(a)
	}
}

// progress is the last report; nil: there is none.
func (a *attempt) progress() json.RawMessage {
	if report := a.report.Load(); report != nil {
		return report.JSON()
	}
	return nil
}

// reportEvery is how long a report of progress may wait for others.
const reportEvery = 500 * time.Millisecond

// toReport has the report of an attempt stored within reportEvery.
func (e *engine) toReport(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.reporting = append(e.reporting, a); len(e.reporting) > 1 {
		return
	}
	e.beside.Go(func() {
		timer := time.NewTimer(reportEvery)
		defer timer.Stop()
		select {
		case <-timer.C:
			e.storeReports()
		case <-e.stopped: // those that have ended have stored it with their end
		}
	})
}

func (e *engine) storeReports() {
	e.mu.Lock()
	list := e.reporting
	e.reporting = nil
	e.mu.Unlock()
	reports := make([]db.Report, 0, len(list))
	for _, a := range list {
		a.toReport.Store(false) // before it is read: what comes later is stored later
		reports = append(reports, db.Report{ClaimID: a.claim, Progress: a.progress()})
	}
	if err := e.worker.WriteProgress(context.Background(), reports); err != nil {
		e.log.Warn("cannot store reports of progress", "err", err)
	}
}

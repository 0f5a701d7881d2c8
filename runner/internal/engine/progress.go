package engine

import (
	"context"
	"encoding/json"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// reportEvery is the time that a report of progress waits for other reports. One write then stores the reports of all attempts.
const reportEvery = 500 * time.Millisecond

// Progress reports the progress of the attempt whose handler has the context ctx.
func Progress(ctx context.Context, done, total int64, text string) {
	a := attemptFrom(ctx)
	if a == nil || a.over.Load() {
		return
	}
	report := &jobs.Progress{Done: done, Text: humanize.Cut(text, taskspec.MaxText)}
	if total > 0 {
		report.Total = total
	}
	a.report.Store(report)
	if a.toReport.CompareAndSwap(false, true) { // if toReport was true, a goroutine is about to store a.report
		a.e.planReport(a)
	}
}

// progress returns the last report as JSON. It returns nil if there is none.
func (a *attempt) progress() json.RawMessage {
	if report := a.report.Load(); report != nil {
		return taskspec.ProgressJSON(report)
	}
	return nil
}

// planReport adds an attempt to the reports that a goroutine stores within reportEvery. It starts this goroutine if no such goroutine
// waits.
func (e *Engine) planReport(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.reporting = append(e.reporting, a); len(e.reporting) > 1 {
		return
	}
	e.background.Go(func() {
		if e.waitFor(reportEvery) { // false if the worker stops: the last reports are then stored with the outcomes
			e.storeReports()
		}
	})
}

func (e *Engine) storeReports() {
	e.mu.Lock()
	list := e.reporting
	e.reporting = nil
	e.mu.Unlock()
	reports := make([]db.Report, 0, len(list))
	for _, a := range list {
		a.toReport.Store(false) // clear toReport before the report is read, so that a later report starts another write
		reports = append(reports, db.Report{ClaimID: a.claim, Progress: a.progress()})
	}
	if err := e.worker.WriteProgress(context.Background(), reports); err != nil {
		e.log.Warn("cannot store progress", "err", err)
	}
}

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
	if a.toReport.CompareAndSwap(false, true) { // if toReport was true, the loop is about to store a.report
		select {
		case a.e.progressed <- struct{}{}:
		default: // the loop will notice an earlier report
		}
	}
}

// progress returns the last report as JSON. It returns nil if there is none.
func (a *attempt) progress() json.RawMessage {
	if report := a.report.Load(); report != nil {
		return taskspec.ProgressJSON(report)
	}
	return nil
}

// storeReports stores the new reports of all attempts.
func (e *Engine) storeReports(ctx context.Context) {
	var reports []db.Report
	for _, a := range e.running {
		if a.toReport.Swap(false) { // before the report is read, so that a later report starts another write
			reports = append(reports, db.Report{ClaimID: a.claim, Progress: a.progress()})
		}
	}
	if len(reports) == 0 {
		return
	}
	if err := e.worker.WriteProgress(ctx, reports); err != nil {
		e.log.Warn("cannot store progress", "err", err)
	}
}

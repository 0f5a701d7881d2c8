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

// reportEvery is the time that a report of progress waits for other reports.
// One write then stores the reports of all attempts.
const reportEvery = 500 * time.Millisecond

// Progress reports the progress of the attempt whose handler has the context
// ctx.
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
	if a.toReport.CompareAndSwap(false, true) { // otherwise a.report is about to be stored
		a.e.report()
	}
}

// report makes reports store what is new.
func (e *Engine) report() {
	select {
	case e.progressed <- struct{}{}:
	default: // reports has not seen the last one yet
	}
}

// progress returns the last report as JSON. It returns nil if there is none.
func (a *attempt) progress() json.RawMessage {
	if report := a.report.Load(); report != nil {
		return taskspec.ProgressJSON(report)
	}
	return nil
}

// reports stores the reports of all attempts, and the queues of the worker when
// they change, until the loop ends. It isn't the loop that does so, because the
// write may have to wait for other processes.
func (e *Engine) reports() {
	for {
		select {
		case <-e.stopped.Done():
			return
		case <-e.progressed:
		}

		if !e.waitFor(reportEvery) {
			return
		}
		e.storeReports()
	}
}

func (e *Engine) storeReports() {
	var reports []db.Report
	e.mu.Lock()
	for _, a := range e.running {
		if a.toReport.Swap(false) { // before the report is read, so that a later report starts another write
			reports = append(reports, db.Report{ClaimID: a.claim, Progress: a.progress()})
		}
	}

	queues, changed := e.o.Queues, e.newQueues
	e.newQueues = false
	e.mu.Unlock()

	if changed {
		if err := e.worker.SetQueues(context.Background(), queues); err != nil {
			e.log.Warn("cannot record the queues of the worker, will try again", "err", err)
			e.mu.Lock()
			e.newQueues = true
			e.mu.Unlock()
			e.report()
		}
	}
	if len(reports) == 0 {
		return
	}
	if err := e.worker.WriteProgress(context.Background(), reports); err != nil {
		e.log.Warn("cannot store progress", "err", err)
	}
}

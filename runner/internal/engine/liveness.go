package engine

import (
	"context"
	"time"

	"example.com/runner/internal/guard"
	"example.com/runner/jobs"
)

// livenessState is the state that the loop keeps about its liveness reports.
type livenessState struct {
	visitedAt  time.Time // time of the last successful cycle
	reportedAt time.Time // time of the last call of Options.Liveness
	dueAt      time.Time // time of the next call of Options.Liveness; zero before the first call
	draining   bool      // whether the last report had Draining set
}

// reportLiveness calls Options.Liveness after the first claim, at the start of a drain, and every LivenessEvery. If the loop has not used
// the database since the last report, reportLiveness first makes a small read. It does not write. A write fails while another process holds
// the write lock for long, and a watchdog would then restart this worker for no reason.
func (e *Engine) reportLiveness(ctx context.Context, stopping bool) {
	if e.o.Liveness == nil || e.liveness.visitedAt.IsZero() {
		return
	}
	l, at := &e.liveness, now()
	if at.Before(l.dueAt) && !(stopping && !l.draining) {
		return
	}
	l.dueAt = at.Add(e.o.LivenessEvery)
	if !l.visitedAt.After(l.reportedAt) {
		if _, err := e.worker.Owned(ctx); err != nil {
			e.log.Warn("cannot read the database", "err", err)
			l.dueAt = at.Add(min(e.o.LivenessEvery, time.Second))
			return
		}
	}
	l.reportedAt, l.draining = at, stopping
	report := jobs.Liveness{Running: e.used(), Draining: stopping}
	if p := guard.Call(func() { e.o.Liveness(report) }); p != nil {
		e.log.Error("the function Liveness does not return", guard.LogArgs(p)...)
	}
}

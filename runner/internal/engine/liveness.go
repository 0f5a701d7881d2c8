package engine

import (
	"context"
	"time"
)

// Liveness is the report that the loop runs and has just read or written the database.
type Liveness struct {
	Running  int           // attempts
	Draining bool          // nothing more is started
	Left     time.Duration // while draining: time until the loop gives up the attempts that still run
}

// livenessState is what the loop remembers about these reports.
type livenessState struct {
	visitedAt  time.Time // when a cycle was last written
	reportedAt time.Time // when Options.Liveness was last called
	dueAt      time.Time // when to call it next
	givesUpAt  time.Time // while draining: when the attempts that still run are given up
	draining   bool      // the last call reported Draining
}

// reportLiveness calls Options.Liveness when it is time: after the first claim, at the start of a drain, and every LivenessEvery. If the
// loop has not used the database since the last call, it makes one small read. It does not write, because a lock that another process holds
// for long is no reason to restart this worker.
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
	report := Liveness{Running: len(e.running), Draining: stopping}
	if stopping {
		report.Left = max(l.givesUpAt.Sub(at), 0)
	}
	e.o.Liveness(report)
}

// untilLiveness shortens a sleep so that it ends when the next report is due.
func (e *Engine) untilLiveness(d time.Duration) time.Duration {
	if e.o.Liveness == nil || e.liveness.visitedAt.IsZero() {
		return d
	}
	return min(d, max(e.liveness.dueAt.Sub(now()), 0))
}

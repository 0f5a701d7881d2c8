package engine

import (
	"context"
	"time"

	"example.com/runner/internal/usercode"
)

// reportLiveness calls WorkOptions.Liveness after the first claim, at the start
// of a drain, and every LivenessEvery. If the loop has not used the database
// since the last report, reportLiveness first makes a small read. It does not
// write. A write fails while another process holds the write lock for long, and
// a watchdog would then restart this worker for no reason.
func (e *Engine) reportLiveness(ctx context.Context) {
	at := now()
	switch {
	case e.o.Liveness == nil, !e.visited && e.livenessAt.IsZero():
		return
	case at.Before(e.livenessAt) && (!e.ending() || e.drainReported):
		return
	}

	e.livenessAt = at.Add(e.o.LivenessEvery)
	if !e.visited {
		if _, err := e.worker.Owned(ctx); err != nil {
			e.log.Warn("cannot read the database", "err", err)
			e.livenessAt = at.Add(min(e.o.LivenessEvery, time.Second))
			return
		}
	}

	e.visited, e.drainReported = false, e.ending()
	if p := usercode.Call(func() { e.o.Liveness(e.used(), e.ending()) }); p != nil {
		e.log.Error("the function Liveness does not return", usercode.LogArgs(p)...)
	}
}

package runner

import (
	"context"
	"time"
)

// Liveness is what Work reports while its loop turns: the loop has been to the database just now.
type Liveness struct {
	Running  int           // attempts
	Draining bool          // whether Work starts nothing more
	Left     time.Duration // Draining: until Work gives up the attempts that still run
}

// pulsing is what the loop remembers of its pulses.
type pulsing struct {
	visitedAt time.Time // when a turn was last written
	pulsedAt  time.Time // when Options.Liveness was last called
	dueAt     time.Time // when to call it next
	givesUpAt time.Time // while draining: when what still runs is given up
	draining  bool      // the last call said so
}

// pulse calls Options.Liveness when it is time: after the first claim, when the drain begins, and every LivenessEvery. A loop that has
// not been to the database since the last one reads a little: reading, since a lock that another process holds for long is no reason to
// start this one afresh.
func (e *engine) pulse(ctx context.Context, stopping bool) {
	if e.r.options.Liveness == nil || e.pulses.visitedAt.IsZero() {
		return
	}
	at := now()
	if at.Before(e.pulses.dueAt) && !(stopping && !e.pulses.draining) {
		return
	}
	e.pulses.dueAt = at.Add(e.r.options.LivenessEvery)
	if !e.pulses.visitedAt.After(e.pulses.pulsedAt) {
		if _, err := e.worker.Owned(ctx); err != nil {
			e.log.Warn("cannot read the database", "err", err)
			e.pulses.dueAt = at.Add(min(e.r.options.LivenessEvery, time.Second))
			return
		}
	}
	e.pulses.pulsedAt, e.pulses.draining = at, stopping
	p := Liveness{Running: len(e.running), Draining: stopping}
	if stopping {
		p.Left = max(e.pulses.givesUpAt.Sub(at), 0)
	}
	e.r.options.Liveness(p)
}

// untilPulse shortens a sleep so that the next pulse is not missed.
func (e *engine) untilPulse(d time.Duration) time.Duration {
	if e.r.options.Liveness == nil || e.pulses.visitedAt.IsZero() {
		return d
	}
	return min(d, max(e.pulses.dueAt.Sub(now()), 0))
}

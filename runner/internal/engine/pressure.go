package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Pressure is the state of a machine whose load is above Options.MaxLoad, or whose free memory is below Options.MinFreeMemory. While it
// lasts, the worker claims no task. Its running tasks continue. The worker measures at most once in pressureEvery, so the tasks of one
// claim may bring the machine beyond these two limits.

const pressureEvery = time.Second

// pressure is what the loop knows about the load and the memory of the machine.
type pressure struct {
	state   string    // db.WorkerOverloaded or db.WorkerLowMemory; empty without pressure
	stored  string    // state that the last successful write has stored in the database
	checkAt time.Time // time of the next measurement
}

// gated reports whether the options limit the load or the free memory.
func (o *Options) gated() bool { return o.MaxLoad > 0 || o.MinFreeMemory > 0 }

// measure returns the state of the machine, and why it is under pressure. It
// returns an error if this system can't measure what the options limit.
func (o *Options) measure() (state, why string, unknown error) {
	if o.MaxLoad > 0 {
		load, err := loadAverage()
		switch {
		case err != nil:
			unknown = &jobs.FieldError{Field: "max_load", Msg: "the load cannot be measured: " + err.Error()}
		case load > o.MaxLoad:
			return db.WorkerOverloaded, fmt.Sprintf("load %.2f is above %g", load, o.MaxLoad), nil
		}
	}
	if o.MinFreeMemory > 0 {
		free, err := freeMemory()
		switch {
		case err != nil:
			return "", "", &jobs.FieldError{Field: "min_free_memory", Msg: "the free memory cannot be measured: " + err.Error()}
		case free < o.MinFreeMemory:
			return db.WorkerLowMemory, fmt.Sprintf("free memory of %s is below %s", humanize.Size(free),
				humanize.ExactSize(o.MinFreeMemory)), nil
		}
	}
	return "", "", unknown
}

// checkPressure measures the machine if it is time to, and records a change in the log and in the database.
func (e *Engine) checkPressure(ctx context.Context, stopping bool) {
	p, at := &e.pressure, now()
	if !e.o.gated() || stopping || at.Before(p.checkAt) {
		return
	}
	p.checkAt = at.Add(pressureEvery)
	state, why, _ := e.o.measure() // a failed measurement counts as no pressure
	switch {
	case state == p.state:
	case state == "":
		e.log.Info("the load and the memory allow tasks to start again")
		e.scan, e.claimMore = true, true
	default:
		e.log.Warn("no task starts for now", "reason", why)
	}
	p.state = state
	if p.stored == p.state {
		return
	}
	if err := e.worker.SetState(ctx, cmp.Or(state, db.WorkerReady)); err != nil { // after an error, the next check writes the state again
		e.log.Warn("cannot record the state of this worker", "err", err)
		return
	}
	p.stored = state
}

// measureAt returns when the machine must be measured again, or zero if nothing
// keeps the worker from starting tasks.
func (e *Engine) measureAt() time.Time {
	if e.pressure.state == "" {
		return time.Time{}
	}
	return e.pressure.checkAt.Add(time.Millisecond)
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/cron"
)

// A schedule may have a function of the program that makes the Spec of the task
// for each tick. The function may be slow or use the database, so it must not
// run inside of the transaction of a tick. So the ticks of a schedule with a
// function take two transactions. The first transaction finds the due ticks and
// changes nothing. Then the functions run, and the second transaction enqueues
// the tasks. If the schedule changes in between, its ticks wait for the next
// call of enqueueTicks.

// TickFunc returns the Spec of the task for a tick. It gets the Spec of the
// schedule.
type TickFunc func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error)

const (
	tickFuncTime = 30 * time.Second // time after which the context of a TickFunc ends
	tickFuncEnd  = time.Second      // longest time that all schedules wait for a TickFunc to return after its context has ended
)

var (
	errNotMade  = errors.New("the function of the schedule has not run yet")
	errNotOurs  = errors.New("another worker has the function of the schedule")
	errNoOnTick = errors.New("a function is registered for the schedule, but its definition does not have OnTick")
)

// tickRound holds the Specs that functions make in one round, which is one call
// of enqueueTicks.
type tickRound struct {
	e     *Engine
	ctx   context.Context
	specs map[tickKey]*tickSpec
}

// tickKey identifies a tick of one version of a schedule.
type tickKey struct {
	schedule      string
	updated, tick int64
}

type tickSpec struct {
	schedule jobs.Schedule
	tick     time.Time
	spec     jobs.Spec
	err      error // errNotMade until the function has run
}

// enqueueTicks enqueues the tasks of all due ticks.
func (e *Engine) enqueueTicks(ctx context.Context, at time.Time, all bool) ([]db.Ticked, error) {
	plan := func(s jobs.Schedule) ([]time.Time, time.Time, error) { return cron.Due(s, at) }
	round := &tickRound{e, ctx, map[tickKey]*tickSpec{}}
	done, err := e.store.Tick(ctx, at, all, plan, round.prepare)
	if err == nil && len(round.specs) > 0 {
		round.callFunctions()
		var more []db.Ticked
		more, err = e.store.Tick(ctx, at, false, plan, round.prepare)
		done = append(done, more...)
	}

	e.notOurs = nil
	known := done[:0]
	for _, one := range done {
		switch {
		case errors.Is(one.Err, errNotOurs):
			e.notOurs = append(e.notOurs, one.Schedule)
		case !errors.Is(one.Err, errNotMade):
			known = append(known, one)
		}
	}

	return known, err
}

// prepare sets the Spec of the task for a tick. If a function makes this Spec,
// but has not run for the tick in this round, prepare notes that it must run,
// and returns errNotMade.
func (r *tickRound) prepare(s *jobs.Schedule, spec *jobs.Spec) error {
	function := r.e.o.OnTick[s.Name]
	switch {
	case s.OnTick && function == nil:
		return errNotOurs
	case !s.OnTick && function != nil:
		return errNoOnTick
	case s.OnTick:
		key := tickKey{s.Name, s.UpdatedAt.UnixMilli(), spec.Tick.UnixMilli()}
		if r.specs[key] == nil {
			r.specs[key] = &tickSpec{schedule: *s, tick: spec.Tick, err: errNotMade}
		}
		made := r.specs[key]
		if made.err != nil {
			return made.err
		}
		changed := *s
		changed.Spec = made.spec
		*spec = taskspec.TickSpec(&changed, spec.Tick)
	}

	return usercode.Flat("the middleware of UseEnqueue", r.e.o.PrepareTick(r.ctx, spec))
}

// callFunctions makes the Specs that prepare has requested, for the oldest
// ticks first. After an error it does not call the function of the same
// schedule again in this round. The schedule may have a hundred more due ticks,
// and other schedules wait until the round ends.
func (r *tickRound) callFunctions() {
	failed := map[string]error{}
	for _, made := range slices.SortedFunc(maps.Values(r.specs), func(a, b *tickSpec) int { return a.tick.Compare(b.tick) }) {
		name := made.schedule.Name
		if made.err = failed[name]; made.err != nil {
			continue
		}
		made.spec, made.err = r.e.callTickFunc(made.schedule, made.tick)
		if made.err != db.ErrSkipTick { //nolint:errorlint // callTickFunc returns it unwrapped
			failed[name] = made.err
		}
	}
}

// callTickFunc calls the function of a schedule for a tick. It does not wait
// for a function that hangs, and does not call the function again before the
// earlier call has returned. Its caller holds Engine.schedulerMu.
func (e *Engine) callTickFunc(s jobs.Schedule, tick time.Time) (jobs.Spec, error) {
	hanging := fmt.Errorf("the function of schedule %s does not return, although its context has ended", s.Name)
	if earlier, ok := e.tickFuncs[s.Name]; ok {
		select {
		case <-earlier:
			delete(e.tickFuncs, s.Name)
		default:
			return jobs.Spec{}, hanging
		}
	}

	ctx, cancel := context.WithTimeout(e.stopped, tickFuncTime)
	defer cancel()

	late, end := Outlive(ctx, tickFuncEnd)
	defer end()

	var spec jobs.Spec
	var err error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		spec, err = MakeTickSpec(ctx, e.o.OnTick[s.Name], s, tick)
		if usercode.Is(err, db.ErrSkipTick) {
			err = db.ErrSkipTick
		} else {
			err = usercode.Flat("the function of schedule "+s.Name, err)
		}
	}()
	select {
	case <-returned:
		return spec, err
	case <-late.Done():
		e.tickFuncs[s.Name] = returned
		return jobs.Spec{}, hanging
	}
}

// MakeTickSpec calls the function of a schedule, and checks the Spec that it
// returns. A panic of the function is an error.
func MakeTickSpec(ctx context.Context, function TickFunc, s jobs.Schedule, tick time.Time) (spec jobs.Spec, err error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return spec, err
	}

	who := "the function of schedule " + s.Name
	if p := usercode.Call(func() { spec, err = function(ctx, tick.In(zone), s.Spec) }); p != nil {
		p.Msg = who + ": " + p.Msg
		return jobs.Spec{}, p
	}
	if err == nil {
		s.Spec = spec
		if err = taskspec.ValidateSchedule(&s); err == nil {
			return s.Spec, nil
		}
	}

	return jobs.Spec{}, &tickError{who, err}
}

// tickError is the error of a function of a schedule.
type tickError struct {
	who string
	err error
}

func (e *tickError) Error() string { return e.who + ": " + e.err.Error() }
func (e *tickError) Unwrap() error { return e.err }

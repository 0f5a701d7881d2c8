package runner

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// SkipTick is the error with which a function of OnTick skips a tick.
var SkipTick = db.ErrSkipTick

// OnTick sets a schedule, as SetSchedule does, and the function that makes the
// task of each of its ticks. A handler that only needs to know the tick needs
// no function: it is the field Tick of its task (TaskFromContext).
//
// The function gets the tick, as a time in the zone of the schedule, and the
// Spec of the schedule. It returns the Spec to enqueue, such as one with the
// tick in its arguments. The task gets only the options of the returned Spec.
// So to change the arguments only, change the field Args of the given Spec and
// return it. Workers without the function leave the ticks of the schedule
// alone. This includes workers of the command line. A tick waits until a worker
// with the function runs. Until then `runner status` reports a problem of the
// schedule. If the schedule has an AlertAfter, it counts as late after that
// time.
//
// Work calls the function outside of every transaction, for one tick at a time.
// Other schedules wait until the function returns, so it should be quick. Its
// context ends after 30 seconds, and at the end of Work. If the function has
// not returned a second after the end of its context, Work logs an error and
// goes on without the function. Work calls the function again only after this
// call has returned. If the function returns an error or an invalid Spec, or
// panics, Work logs the error and calls the function again about a second
// later, for the oldest due tick first. Meanwhile all due ticks stay due. If a
// tick is late by then, Schedule.CatchUp decides what happens to the tick, as
// it does when no worker has run. The function may be called more than once for
// a tick, also by two workers at the same time, but a tick gets only one task.
// Work does not call the function for a tick that Overlap skips.
// admin.RunSchedule calls the function with the present time.
//
// If the function returns an error that wraps SkipTick, the tick gets no task,
// and the next tick follows as usual. admin.RunSchedule then returns that
// error.
//
// Errors of the definition are of kind jobs.ErrInvalid. OnTick panics if the
// function is nil, if the schedule has a function already, or while Work runs.
func (r *Runner) OnTick(
	ctx context.Context, s jobs.Schedule, function func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error),
) error {
	r.beforeWork("OnTick")()
	if function == nil {
		panic("runner: the function of schedule " + s.Name + " is nil")
	}
	if r.tickFunc(s.Name) != nil {
		panic("runner: schedule " + s.Name + " has two functions")
	}

	s.OnTick = true
	if err := r.SetSchedule(ctx, s); err != nil {
		return err
	}

	defer r.beforeWork("OnTick")()
	if r.onTick == nil {
		r.onTick = map[string]engine.TickFunc{}
	}
	r.onTick[s.Name] = function
	return nil
}

// tickFunc returns the function of a schedule, or nil.
func (r *Runner) tickFunc(schedule string) engine.TickFunc {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.onTick[schedule]
}

// madeSpec calls the function of a schedule with the present time, and returns
// the Spec that the function makes. It returns nil if the schedule needs no
// function.
func (r *Runner) madeSpec(ctx context.Context, name string) (*jobs.Spec, error) {
	s, err := r.store.Schedule(ctx, name)
	if err != nil || !s.OnTick {
		return nil, err
	}

	function := r.tickFunc(name)
	if function == nil {
		return nil, &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.NoTickFunction, Subject: name,
			What: fmt.Sprintf("a function makes the tasks of schedule %s, and this program does not have the function", name),
			Hint: "run the schedule from the program that calls OnTick"}
	}

	spec, err := engine.MakeTickSpec(ctx, function, s, now())
	return &spec, err
}

package engine

import (
	"context"
	"time"

	"example.com/runner/jobs"
)

// An attempt is stuck if it runs for longer than StuckAfter after its context has ended. The context ends because of a timeout, a cancel
// request, a lost lease or a shutdown. Go cannot stop a goroutine, so the engine only logs a warning. With ReleaseStuck it also ends the
// attempt. The goroutine of the function then goes on without a slot, and the engine ignores its result. The engine never does this with a
// command, because the processes of the command would still run during the next attempt.

// watchStuck plans a check whether the attempt is stuck. The context of the attempt has just ended.
func (a *attempt) watchStuck() {
	if a.e.o.StuckAfter < 0 || a.over.Load() {
		return
	}
	wait := a.e.o.StuckAfter
	if a.task.Job == jobs.CommandJob {
		wait += a.task.KillAfter
	}
	stopped := now()
	a.stuckCheck.Store(time.AfterFunc(wait, func() { a.checkStuck(stopped) }))
}

// checkStuck logs a warning if the attempt still runs. With ReleaseStuck it also ends the attempt of a function. The parameter "stopped" is
// the time at which the context of the attempt ended.
func (a *attempt) checkStuck(stopped time.Time) {
	if a.over.Load() {
		return
	}
	cause := context.Cause(a.ctx)
	release := a.e.o.ReleaseStuck && a.task.Job != jobs.CommandJob
	a.e.log.Warn("stuck: the attempt runs although its context has ended", "task", a.task.ID, "attempt", attemptOf(a.task),
		"job", a.task.Job, "since", now().Sub(stopped).Round(time.Millisecond), "cause", cause, "released", release)
	if !release {
		return
	}
	a.leaked.Store(true) // set a.leaked before a.over: once a.over is set, a.returned may run, and it reads a.leaked
	a.e.o.Leaked.Add(1)
	if !a.over.CompareAndSwap(false, true) {
		a.unleak()
		return
	}
	a.closeOutput()
	a.setOutcome(a.classify(nil, cause), now().Sub(a.task.StartedAt))
	a.outcome.Error += "; the function ignored the end of its context"
	a.e.ended <- a
}

// watchBatch is called when all tasks of a batch have ended. It plans a warning for the case that the function of the batch does not
// return. The slot stays taken even with ReleaseStuck, because nothing has told the function to stop.
func (e *Engine) watchBatch(b *batch) {
	if e.o.StuckAfter < 0 {
		return
	}
	ended := now()
	b.stuck = time.AfterFunc(e.o.StuckAfter, func() {
		e.log.Warn("stuck: the function of a batch runs although all its tasks have ended", "job", b.job, "queue", b.queue,
			"since", now().Sub(ended).Round(time.Millisecond))
	})
}

// returned is called when the handler of the attempt has returned. It cancels the planned call of checkStuck.
func (a *attempt) returned() {
	if check := a.stuckCheck.Load(); check != nil {
		check.Stop()
	}
	a.unleak()
}

// unleak subtracts the attempt from the counter Options.Leaked, if checkStuck has counted it there.
func (a *attempt) unleak() {
	if a.leaked.CompareAndSwap(true, false) {
		a.e.o.Leaked.Add(-1)
	}
}

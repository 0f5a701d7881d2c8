package engine

import (
	"context"
	"time"

	"example.com/runner/jobs"
)

// An attempt is stuck if it runs for longer than StuckAfter after its context has ended. The context ends because of a timeout, a cancel
// request, a lost lease or a shutdown. Go cannot stop a goroutine, so the engine only logs a warning.

// watchStuck logs a warning if the attempt still runs when StuckAfter has
// passed. Its context has just ended.
func (a *attempt) watchStuck() {
	if a.e.o.StuckAfter < 0 || a.over.Load() {
		return
	}
	wait := a.e.o.StuckAfter
	if a.task.Job == jobs.CommandJob {
		wait += a.task.KillAfter
	}
	time.AfterFunc(wait, func() {
		if !a.over.Load() {
			a.e.log.Warn("stuck: the attempt runs although its context has ended", "task", a.task.ID, "attempt", attemptOf(a.task),
				"job", a.task.Job, "since", wait.Round(time.Millisecond), "cause", context.Cause(a.ctx))
		}
	})
}

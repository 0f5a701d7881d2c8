package engine

import "time"

// A snooze counts against no limit. So a function that always returns
// jobs.Snooze(0), or Snooze(time.Until(t)) just before t, would run hundreds of
// times a second, with a record in the database for each attempt.
const (
	shortSnooze = 100 * time.Millisecond
	freeSnoozes = 10     // short snoozes in a row of one task that keep their length
	maxSnoozing = 10_000 // number of tasks whose snoozes a worker counts
)

// limitSnooze makes the snooze of an attempt longer if the task snoozes again
// and again.
func (e *Engine) limitSnooze(a *attempt) {
	id := a.task.ID
	if d, snoozed := a.outcome.Snoozed(); !snoozed || d >= shortSnooze {
		delete(e.snoozes, id)
		return
	}
	if e.snoozes == nil || len(e.snoozes) >= maxSnoozing {
		e.snoozes = map[int64]int{}
	}

	e.snoozes[id]++
	if n := e.snoozes[id]; n <= freeSnoozes {
		return
	} else if n == freeSnoozes+1 {
		e.log.Warn("the task snoozes without a pause", "task", id, "job", a.task.Job, "snoozes", n, "pause", shortSnooze)
	}

	a.outcome.SetSnooze(shortSnooze)
}

package taskspec

import (
	"fmt"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// InitialState returns the state in which a task waits for its start: when it
// is enqueued, retried or due, and when its last dependency has finished. waits
// says whether it waits for another task, and laneTaken whether another task
// holds its lane or comes before it there.
func InitialState(runAt, now time.Time, waits, laneTaken bool) jobs.State {
	switch {
	case waits:
		return jobs.Blocked
	case runAt.After(now): // a task that isn't due yet must not delay others in its lane
		return jobs.Scheduled
	case laneTaken:
		return jobs.Blocked
	}
	return jobs.Pending
}

// HoldsLane reports whether a task keeps its lane when it leaves the state
// running for s. It gives the lane up when it has finished or snoozed.
func HoldsLane(s jobs.State) bool {
	return s == jobs.Pending || s == jobs.Running || s == jobs.Retrying
}

// Releases reports whether a task that has finished in state s lets a dependent
// task start. If not, the dependent is cancelled with jobs.ReasonDependency.
// anyOutcome is for a dependent that accepts every final state.
func Releases(s jobs.State, anyOutcome bool) bool {
	return s == jobs.Completed || anyOutcome && s.Finished()
}

// CheckOwner returns nil if task t is running with this generation and nobody
// has asked to cancel it. Otherwise the attempt must stop, and the error is of
// kind jobs.ErrCancelled or jobs.ErrLost.
func CheckOwner(t jobs.Task, generation int64) error {
	kind, what := jobs.ErrLost, ""
	switch {
	case t.GenerationID < generation:
		what = fmt.Sprintf("never had generation %d, only %d", generation, t.GenerationID)
	case t.State == jobs.Running && t.GenerationID > generation:
		what = fmt.Sprintf("is owned by a later attempt (generation %d, this is %d)", t.GenerationID, generation)
	case t.State != jobs.Running:
		what = fmt.Sprintf("is %s, no longer running (generation %d, this is %d)", t.State, t.GenerationID, generation)
	case !t.CancelRequestedAt.IsZero():
		kind, what = jobs.ErrCancelled, "is to be cancelled"
	default:
		return nil
	}

	return &jobs.Error{Kind: kind, What: fmt.Sprintf("task %d %s", t.ID, what)}
}

// stuckAfter is how long an attempt may go on after its context has ended.
const stuckAfter = 10 * time.Second

// Stuck reports whether a running task should have ended long ago, because of
// its timeout or a cancel. since is the time at which the attempt's context
// ended, or for a command the time of its SIGKILL.
func Stuck(t *jobs.Task, now time.Time) (since time.Time, stuck bool) {
	if t.State != jobs.Running || t.StartedAt.IsZero() {
		return time.Time{}, false
	}

	since = t.CancelRequestedAt
	if end := t.StartedAt.Add(t.Timeout); t.Timeout > 0 && (since.IsZero() || end.Before(since)) {
		since = end
	}
	if since.IsZero() {
		return since, false
	}
	if t.Job == command.Job {
		since = since.Add(t.KillAfter)
	}

	return since, now.Sub(since) >= stuckAfter
}

package search

import (
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Verb is an action that a user can apply to tasks.
type Verb string

const (
	VerbCancel Verb = "cancel"
	VerbRetry  Verb = "retry"
	VerbDelete Verb = "delete"
	VerbPause  Verb = "pause"
	VerbResume Verb = "resume"
	VerbFirst  Verb = "first"
)

// waiting lists the states of tasks that neither run nor have finished.
var waiting = []jobs.State{jobs.Scheduled, jobs.Pending, jobs.Blocked, jobs.Retrying}

// Filter limits a filter to the tasks to which the verb applies. Cancel applies
// to unfinished tasks, and delete to finished tasks. Pause and first apply to
// waiting tasks, and resume to paused tasks. Retry applies to failed tasks,
// unless f names other states; to completed tasks only if f has their ids. ok
// is false if no task can match.
func (verb Verb) Filter(f jobs.Filter) (only jobs.Filter, ok bool) {
	switch verb {
	case VerbCancel:
		return limitStates(f, taskspec.Unfinished(), taskspec.Unfinished())
	case VerbDelete:
		return limitStates(f, taskspec.Finished(), taskspec.Finished())
	case VerbPause, VerbFirst:
		return limitStates(f, waiting, waiting)
	case VerbResume:
		f.Paused = len(f.IDs) == 0
		return limitStates(f, []jobs.State{jobs.Blocked}, []jobs.State{jobs.Blocked})
	}
	return limitStates(f, []jobs.State{jobs.Failed}, []jobs.State{jobs.Failed, jobs.Cancelled, jobs.Retrying, jobs.Scheduled})
}

// limitStates limits the states of a filter without ids to possible ones; a
// filter without states gets the defaults. ok is false if no state remains.
func limitStates(f jobs.Filter, defaults, possible []jobs.State) (only jobs.Filter, ok bool) {
	switch {
	case len(f.IDs) > 0:
	case len(f.States) == 0:
		f.States = defaults
	default:
		f.States = slices.DeleteFunc(slices.Clone(f.States), func(s jobs.State) bool { return !slices.Contains(possible, s) })
		return f, len(f.States) > 0
	}
	return f, true
}

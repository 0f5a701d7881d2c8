package search

import (
	"slices"

	"example.com/runner/jobs"
)

// Verb is an action on all tasks that a filter selects.
type Verb string

// The verbs.
const (
	VerbCancel Verb = "cancel"
	VerbRetry  Verb = "retry"
	VerbDelete Verb = "delete"
	VerbHold   Verb = "hold"
	VerbTop    Verb = "top"

	VerbRelease Verb = "release"
)

// waiting are the states of tasks that do not run and have not finished.
var waiting = []jobs.State{jobs.Scheduled, jobs.Pending, jobs.Blocked, jobs.Retrying}

// Filter limits f to the tasks that the verb applies to. Cancel applies to unfinished tasks, and delete to finished tasks. Hold and top
// apply to tasks that wait, and release to held tasks. Retry applies to failed tasks, or to the states that f names. It applies to
// completed tasks only if f selects them by id. The result ok is false if the limited filter selects no task.
func (verb Verb) Filter(f jobs.Filter) (only jobs.Filter, ok bool) {
	switch verb {
	case VerbCancel:
		return limited(f, jobs.Unfinished(), jobs.Unfinished())
	case VerbDelete:
		return limited(f, jobs.Finished(), jobs.Finished())
	case VerbHold, VerbTop:
		return limited(f, waiting, waiting)
	case VerbRelease:
		f.Held = len(f.IDs) == 0
		return limited(f, []jobs.State{jobs.Blocked}, []jobs.State{jobs.Blocked})
	}
	return limited(f, []jobs.State{jobs.Failed}, []jobs.State{jobs.Failed, jobs.Cancelled, jobs.Retrying, jobs.Scheduled})
}

// limited limits the states of a filter. If the filter names no state, it gets the states in defaults. Otherwise it keeps its states that
// are also in possible. The result ok is false if no state is left. limited does not change a filter that selects tasks by id.
func limited(f jobs.Filter, defaults, possible []jobs.State) (only jobs.Filter, ok bool) {
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

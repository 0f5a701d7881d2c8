package jobs

import (
	"slices"
	"time"
)

// Filter selects tasks that match all of its fields. A field with several entries matches any of them, and an empty field matches every
// task. So the zero Filter selects all tasks.
type Filter struct {
	IDs      []int64
	Queues   []string
	States   []State
	Jobs     []string
	Label    string
	Lane     string
	Schedule string
	Worker   string // name or id of the worker of the current or last attempt
	Match    string // substring of label, job, args or error; ASCII case is ignored

	// Since and Until limit the end of finished tasks, and the creation of unfinished tasks.
	Since, Until time.Time
	// FinishedBefore selects tasks that finished before this time.
	FinishedBefore time.Time

	Before int64 // selects ids below it; 0 for no limit
	After  int64 // selects ids above it
}

// Verb is an action on all tasks that a filter selects.
type Verb string

// The verbs.
const (
	VerbCancel Verb = "cancel"
	VerbRetry  Verb = "retry"
	VerbDelete Verb = "delete"
)

// For limits the filter to the tasks that the verb applies to. Cancel applies to unfinished tasks, and delete to finished tasks. Retry applies
// to failed tasks, or to the states that the filter names; completed tasks can be retried by id only. ok is false if the filter
// selects no task then.
func (f Filter) For(verb Verb) (only Filter, ok bool) {
	switch verb {
	case VerbCancel:
		return f.only(Unfinished(), Unfinished())
	case VerbDelete:
		return f.only(Finished(), Finished())
	}
	return f.only([]State{Failed}, slices.DeleteFunc(States(), func(s State) bool { return s == Completed }))
}

// only limits the filter's states: to usual if the filter names no state, else to those that are in possible. ok is false if no state is
// left. A filter of ids is not limited.
func (f Filter) only(usual, possible []State) (only Filter, ok bool) {
	switch {
	case len(f.IDs) > 0:
	case len(f.States) == 0:
		f.States = usual
	default:
		f.States = slices.DeleteFunc(slices.Clone(f.States), func(s State) bool { return !slices.Contains(possible, s) })
		return f, len(f.States) > 0
	}
	return f, true
}

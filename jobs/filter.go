package jobs

import (
	"slices"
	"time"
)

// Filter selects tasks. Fields are ANDed, the entries of one field ORed; what is empty does not select. The zero Filter
// selects every task.
type Filter struct {
	IDs      []int64
	Queues   []string
	States   []State
	Jobs     []string
	Label    string
	Lane     string
	Schedule string
	Worker   string // name or id of the worker of the current or last attempt
	Match    string // part of label, job, args or error; ASCII case ignored

	// Since and Until compare the end of finished tasks and the creation of unfinished ones.
	Since, Until time.Time
	// FinishedBefore selects tasks that finished before it.
	FinishedBefore time.Time

	Before int64 // only ids below it; 0: all
	After  int64 // only ids above it
}

// Verb is what people do with tasks that a filter selects.
type Verb string

// The verbs.
const (
	VerbCancel Verb = "cancel"
	VerbRetry  Verb = "retry"
	VerbDelete Verb = "delete"
)

// For narrows the filter to the tasks that a verb is for: cancel those that are unfinished; retry those that failed, unless it names other
// states, and completed ones by id only; delete those that are finished. ok is false when nothing is left.
func (f Filter) For(verb Verb) (only Filter, ok bool) {
	switch verb {
	case VerbCancel:
		return f.only(Unfinished(), Unfinished())
	case VerbDelete:
		return f.only(Finished(), Finished())
	}
	return f.only([]State{Failed}, slices.DeleteFunc(States(), func(s State) bool { return s == Completed }))
}

// only narrows the filter: usual states when it names none, else those of its states that are possible. ok is false
// when none of them is: then the filter selects nothing. Ids stand for themselves.
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

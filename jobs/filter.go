package jobs

import "time"

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

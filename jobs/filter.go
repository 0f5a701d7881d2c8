package jobs

import "time"

// Filter selects the tasks that match all of its fields. If a field is a list,
// a task matches if it matches one of the entries. An empty field matches every
// task. So the zero Filter selects all tasks.
type Filter struct {
	IDs      []int64
	Queues   []string
	States   []State
	Jobs     []string
	Label    string
	Lane     string
	Schedule string
	Batch    int64  // id of a batch; 0 for any task
	Worker   string // name or id of the worker of the current or last attempt
	Paused   bool   // whether only paused tasks match
	Match    string // text in the label, job, args or error; ASCII case is ignored

	// Metadata holds texts by key. A task matches if its metadata has all of
	// them.
	Metadata map[string]string

	// Since and Until are bounds for the time at which a finished task ended,
	// or at which an unfinished task was created: from Since on, and before
	// Until.
	Since, Until time.Time
	// FinishedBefore selects tasks that finished before this time.
	FinishedBefore time.Time

	Before int64 // selects ids below this one; 0 for no limit
	After  int64 // selects ids above this one

	Limit       int  // greatest number of tasks in a list; 0 for all
	OldestFirst bool // whether the oldest task comes first; by default the newest task comes first
}

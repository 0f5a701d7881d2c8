package jobs

// Enqueued is the result of enqueuing a Spec.
type Enqueued struct {
	ID       int64
	Kept     bool // whether another task held the unique key; ID is then the id of that task, and no task was added
	Replaced bool // whether a waiting task held the key and now has the settings of the Spec; Kept is then false
}

// ActionResult is what cancelling, retrying, pausing, resuming or deleting did
// with one task.
type ActionResult struct {
	ID    int64
	State State // state after the call; empty if there is no such task

	// Done is whether the task is now as requested, because of this call or an
	// earlier change. After Cancel it is whether the task has ended, in
	// whatever state, or its worker will stop it: State says which.
	Done  bool
	Taken bool // only for a retry: whether another task holds the unique key of this task

	// Without is only for a retry: a deleted task that this task depended on,
	// so that its result is missing in the next attempt. 0 means none.
	Without int64
	// NeededBy is only for a deletion: an unfinished task that depends on this
	// finished task, which therefore stays. 0 means none.
	NeededBy int64
}

// QueueMax is a queue that a worker serves.
type QueueMax struct {
	Name string `json:"queue"`
	Max  int    `json:"max"` // greatest number of tasks or batches of the queue that the worker runs at once; 0 for all slots
}

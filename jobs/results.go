package jobs

import "time"

// Enqueued is the result of enqueuing a Spec.
type Enqueued struct {
	ID       int64
	Kept     bool // whether another task held the unique key; ID is then the id of that task, and no task was added
	Replaced bool // whether a waiting task held the key and now has the settings of the Spec; Kept is then false
}

// ActionResult is what cancelling, retrying or deleting did with one task.
type ActionResult struct {
	ID    int64
	State State // state after the call; empty if there is no such task
	Done  bool  // whether the task is now in the requested state, because of this call or an earlier change
	Taken bool  // only for a retry: whether another task holds the unique key of this task

	// Without is only for a retry: a deleted task that this task depended on,
	// so that its result is missing in the next attempt. 0 means none.
	Without int64
	// NeededBy is only for a deletion: an unfinished task that depends on this
	// finished task, which therefore stays. 0 means none.
	NeededBy int64
}

// LimitStatus is a limit and its use.
type LimitStatus struct {
	Limit
	InUse     int       // number of running tasks of the target
	NextAt    time.Time // time at which the rate limit lets the next task start; zero if a task can start now, or without a rate limit
	UpdatedAt time.Time
}

// Dependency is a dependency between a given task and another task.
type Dependency struct {
	ID    int64 `db:"id"`
	Any   bool  `db:"any_outcome"` // whether the task that waits may start even if the other has failed or was cancelled
	State State `db:"state"`       // state of the other task; empty if the other task was deleted
}

// QueueMax is a queue that a worker serves.
type QueueMax struct {
	Name string `json:"queue"`
	Max  int    `json:"max"` // greatest number of tasks or batches of the queue that the worker runs at once; 0 for all slots
}

// Worker is the record that a worker has written about itself.
type Worker struct {
	ID        string // random text that identifies the worker; no other worker ever has the same id
	Name      string // name of the worker, from runner.WorkOptions.Name
	Host      string
	BootID    string // id of the current boot of the machine when the worker started; empty if unknown
	PID       int
	Namespace string     // PID namespace that PID belongs to; empty if unknown
	User      string     // name of the user who runs the worker
	UID       int        // id of the user who runs the worker; -1 if unknown
	Version   string     // version of runner in the worker, as in the constant runner.Version
	Slots     int        // greatest number of attempts that the worker runs at once; the attempts of a batch count as one
	Queues    []QueueMax // queues that the worker serves; nil for all queues
	Jobs      []string   // names of the jobs whose tasks the worker takes; none in runner run
	// State is the worker's state when Workers was called:
	//
	//	ready:      it starts tasks.
	//	draining:   it starts no more tasks.
	//	lost:       it is dead, or its last heartbeat is older than its lease.
	State     string
	Lease     time.Duration
	StartedAt time.Time
	BeatAt    time.Time // time of the last heartbeat of the worker
	Dead      bool      // whether the process of the worker is known to be dead; false for a worker of another machine
	Running   []int64   // ids of the tasks that the worker runs
}

// QueueStatus is a queue with its counts.
type QueueStatus struct {
	Name   string         // name of the queue
	Counts map[State]int  // numbers of unfinished tasks by state
	Jobs   map[string]int // numbers of pending tasks by job
	Ended  map[State]int  // numbers of tasks that ended in the last 24 hours, by state; a task that ended twice counts twice
	// Failed is how many of the failed tasks in Ended are still failed, because
	// they were neither retried nor deleted since. It counts the latest 10,000
	// failed tasks of all queues.
	Failed int
	Pause  Pause     // pause of this queue or of all queues, which keeps its tasks from starting; zero if there is none
	Oldest time.Time // due time of the pending task that waits longest; zero if no task waits
}

// Pause is a pause of a queue, of all queues, or of deletions.
type Pause struct {
	At     time.Time // when the pause began; zero if there is no pause
	By     string    // name of the user who began the pause
	Reason string    // reason that the user gave for the pause; empty if there is none
	Until  time.Time // when the pause ends by itself; zero if it lasts until Resume
}

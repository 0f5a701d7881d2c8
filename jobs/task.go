package jobs

import (
	"encoding/json"
	"time"

	"example.com/runner/jobs/command"
)

// Task is a copy of one row of the database. A change of the copy does not
// change the row. Zero times, empty strings and zero durations mean "none"
// unless stated otherwise. The fields from StartedAt on describe the current or
// the last attempt.
type Task struct {
	ID           int64 // id; later tasks have greater ids, with gaps, and no id is used again
	GenerationID int64 // fencing token; grows with every change of state or owner
	Job          string
	Args         json.RawMessage // input of a function, or argv of a command; nil for none. See Command for its form
	Label        string
	Queue        string
	State        State
	Reason       Reason
	Priority     int       // tasks with a higher priority run first
	DependsOn    []int64   // tasks that must still complete; not set in a task that was just claimed
	DependsOnAny []int64   // tasks that must still finish; not set in a task that was just claimed
	Waits        bool      // whether the task waits for other tasks
	Depends      bool      // whether the task waits or has waited for other tasks
	PausedAt     time.Time // time at which somebody paused the task; zero if it is not paused
	PausedBy     string    // user who paused the task
	PausedReason string
	Lane         string // lane key; tasks with the same key run one at a time
	UniqueKey    string // as stored: JOB#KEY for a function; see Unique
	Kept         bool   // whether Enqueue or EnqueueTx added nothing, because this task already held the unique key; false from other calls
	Schedule     string
	Tick         time.Time // tick for which the schedule has enqueued the task
	Batch        int64     // id of the first task of the batch; 0 if the task was added alone; not set in a task that was just claimed
	RunAt        time.Time // due time
	ExpiresAt    time.Time // time of the expiry; the task is cancelled if it has not started by then

	Attempt     int // count of started attempts; lost attempts, snoozes and attempts that a worker gave back do not count
	MaxAttempts int // greatest number of attempts; if 0, the first start of the task stores the default of the job here
	Losses      int
	MaxLosses   int
	Options
	InputBytes int64 // size of the command's standard input; -1 if it was that of runner run, which is not stored

	WorkerID          string
	Worker            string // name of the worker whose id is WorkerID
	LeaseExpiresAt    time.Time
	CancelRequestedAt time.Time
	CancelNow         bool   // whether the command is killed with SIGKILL at once, without SIGTERM
	CancelText        string // user who asked for the cancellation of a running task, and the reason
	CreatedAt         time.Time
	CreatedBy         string
	UpdatedAt         time.Time

	StartedAt       time.Time
	FinishedAt      time.Time // end of the task; zero while it is unfinished
	Duration        time.Duration
	Result          json.RawMessage
	Error           string // error of the last attempt; for a cancelled task, the user who cancelled it and the reason
	ErrorLine       string // last line that the failed command printed to stderr, or else to stdout; at most 200 bytes of plain text
	ExitCode        *int
	Signal          int
	OutputBytes     int64
	OutputTruncated bool
	Usage           command.Usage
	ChildrenKilled  int       // number of left-over processes of the command that were killed when the command exited
	ChildrenLeft    int       // number of left-over processes of the command that live on; see command.Settings.LeaveChildren
	Progress        *Progress // last report of the current or last attempt; nil if there is none
}

// Progress is the progress that a function reports.
type Progress struct {
	Done  int64  // amount of finished work, in any unit
	Total int64  // amount of all work, in the same unit as Done; 0 if not known
	Text  string // text of at most 200 bytes
}

package jobs

// State is the state of a task. The database, JSON and the command line use the
// same words.
type State string

// The states of a task. The first five are unfinished: the task will start, or
// is running.
const (
	Scheduled State = "scheduled" // waits for its start time
	Pending   State = "pending"   // may start now
	Blocked   State = "blocked"   // waits for another task, for its lane, or until somebody resumes it
	Running   State = "running"   // an attempt is in progress
	Retrying  State = "retrying"  // an attempt failed; the next one is due later
	Completed State = "completed" // finished with exit status 0 or without an error
	Failed    State = "failed"    // finished with an error, and no retry follows
	Cancelled State = "cancelled" // stopped on request, expired, or not started because a dependency did not complete
)

// Finished reports whether a task in this state has ended.
func (s State) Finished() bool { return s == Completed || s == Failed || s == Cancelled }

package taskspec

// The events that hooks report. They are the values of jobs.Options.Event and of the variable RUNNER_EVENT.
const (
	EventFailed    = "failed"    // the task has failed and is not retried
	EventCompleted = "completed" // the task has completed
	EventLate      = "late"      // no task of the schedule has completed for too long
	EventSlow      = "slow"      // the task of the schedule runs for much longer than usual
	EventRecovered = "recovered" // the task has completed, and the one before it failed
	EventOutput    = "output"    // the task has completed or failed, and has printed something
)

// Events lists all events.
var Events = []string{EventFailed, EventCompleted, EventRecovered, EventOutput, EventLate, EventSlow}

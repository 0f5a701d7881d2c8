package taskspec

// Hooks report these events. The constants are values of jobs.Options.Event and of the variable RUNNER_EVENT.
const (
	EventFailed    = "failed"    // the task has failed for the last time
	EventCompleted = "completed" // the task has completed
	EventLate      = "late"      // no task of the schedule has completed for a longer time than AlertAfter
	EventRecovered = "recovered" // the task has completed after the previous task of the same schedule or unique key had failed
	EventOutput    = "output"    // the task has completed or failed, and has printed something
)

// Events lists all events.
var Events = []string{EventFailed, EventCompleted, EventRecovered, EventOutput, EventLate}

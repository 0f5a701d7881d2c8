package jobs

import (
	"encoding/json"
	"time"
)

// Step is the record of a step that has ended, or of a sleep. A later attempt
// of the task does not run the step again.
type Step struct {
	Name         string
	GenerationID int64           // generation of the task in the attempt that ran the step
	Value        json.RawMessage // return value; nil for a sleep
	WakeAt       time.Time       // end of a sleep; zero for a step
	At           time.Time       // when the step ended, or when the sleep began
}

// Slept reports whether the record is of a sleep.
func (s Step) Slept() bool { return !s.WakeAt.IsZero() }

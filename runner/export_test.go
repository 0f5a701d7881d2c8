package runner

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// MinLease is the shortest lease that is reliable on a busy machine.
const MinLease = 5 * time.Second

// Surroundings holds the data that Why needs about a task.
type Surroundings struct {
	Ahead   int
	Holders []int64
	Pauses  Pauses
	Limits  []LimitStatus
	Workers []Worker
}

// Wait returns the reason why task t waits, according to this data.
func (s Surroundings) Wait(t jobs.Task, now time.Time) Wait {
	limits := taskspec.LimitsOf(s.Limits)
	return waitContext{ahead: s.Ahead, holders: s.Holders, pauses: s.Pauses, limits: limits, workers: s.Workers}.wait(t, now)
}

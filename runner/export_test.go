package runner

import (
	"time"

	"example.com/runner/jobs"
)

// Surroundings holds the data that Why needs about a task.
type Surroundings struct {
	Ahead   int
	Holders []int64
	Holds   Holds
	Workers []Worker
	Run     time.Duration
}

// Wait returns the reason why task t waits, according to this data.
func (s Surroundings) Wait(t jobs.Task, now time.Time) Wait {
	return waitContext{ahead: s.Ahead, holders: s.Holders, holds: s.Holds, workers: s.Workers, run: s.Run}.wait(t, now)
}

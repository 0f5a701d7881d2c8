package admin

import (
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// Surroundings holds the data that Why needs about a task.
type Surroundings struct {
	Ahead   int
	Holders []int64
	Pauses  PauseMap
	Limits  []LimitStatus
	Workers []Worker
}

// Wait returns the reason why task t waits, according to this data.
func (s Surroundings) Wait(t jobs.Task, now time.Time) Wait {
	limits := db.LimitsOf(s.Limits)
	return waitContext{ahead: s.Ahead, holders: s.Holders, pauses: s.Pauses, limits: limits, workers: s.Workers}.wait(t, now)
}

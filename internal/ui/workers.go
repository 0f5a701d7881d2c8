package ui

import (
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// Ticking counts the active schedules, which are those that aren't paused.
func Ticking(schedules []jobs.Schedule) (n int) {
	for _, s := range schedules {
		if s.PausedAt.IsZero() {
			n++
		}
	}
	return n
}

// LiveWorkers returns how many workers take tasks and aren't lost, and the sums
// of their busy slots and of all their slots. A worker may run more tasks than
// it has slots, because tasks that one call of a function handles together
// share a slot. All its slots then count as busy.
func LiveWorkers(workers []admin.Worker) (alive, busy, slots int) {
	for _, w := range workers {
		if w.State != admin.WorkerLost && len(w.Jobs) > 0 {
			alive++
			busy += min(len(w.Running), w.Slots)
			slots += w.Slots
		}
	}
	return alive, busy, slots
}

// AllPaused reports whether all queues are paused.
func AllPaused(pauses admin.PauseMap) bool {
	_, ok := pauses[admin.AllQueues]
	return ok
}

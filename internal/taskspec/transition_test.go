package taskspec

import (
	"slices"
	"testing"

	"example.com/runner/jobs"
)

// transitionTable lists, for each state, the states that can follow it. It is written by hand and does not use the variable "moves".
var transitionTable = map[jobs.State][]jobs.State{
	jobs.Scheduled: {jobs.Pending, jobs.Blocked, jobs.Cancelled},
	jobs.Pending:   {jobs.Running, jobs.Blocked, jobs.Cancelled, jobs.Scheduled},
	jobs.Blocked:   {jobs.Pending, jobs.Scheduled, jobs.Cancelled},
	jobs.Running:   {jobs.Completed, jobs.Failed, jobs.Retrying, jobs.Cancelled, jobs.Pending, jobs.Scheduled},
	jobs.Retrying:  {jobs.Pending, jobs.Cancelled, jobs.Scheduled, jobs.Blocked},
	jobs.Completed: {jobs.Pending, jobs.Scheduled, jobs.Blocked},
	jobs.Failed:    {jobs.Pending, jobs.Scheduled, jobs.Blocked},
	jobs.Cancelled: {jobs.Pending, jobs.Scheduled, jobs.Blocked},
}

func TestCanMoveMatchesTransitionTable(t *testing.T) {
	for _, from := range jobs.States() {
		for _, to := range jobs.States() {
			if got, want := CanMove(from, to), slices.Contains(transitionTable[from], to); got != want {
				t.Errorf("CanMove(%s, %s): got %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestTransitionsAreUniqueAndChangeState(t *testing.T) {
	seen := map[move]bool{}
	for _, m := range moves {
		if seen[m] || m.From == m.To || m.By == "" {
			t.Errorf("got transition from %q to %q by %q, listed before: %v; want two states and an action, listed once",
				m.From, m.To, m.By, seen[m])
		}
		seen[m] = true
	}
}

func TestOnlyRetryLeavesFinishedState(t *testing.T) {
	for _, m := range moves {
		if m.From.Finished() != (m.By == "retry") {
			t.Errorf("got transition from %s to %s by %s, want retry for a finished state and another action for others", m.From,
				m.To, m.By)
		}
	}
}

func TestOnlyClaimLeadsToRunningAndOnlyRunningTasksCompleteOrFail(t *testing.T) {
	for _, m := range moves {
		if (m.To == jobs.Running) != (m.By == "claim") || m.To == jobs.Running && m.From != jobs.Pending {
			t.Errorf("got transition from %s to %s by %s, want claim to lead to running, and only from pending", m.From, m.To, m.By)
		}
		if (m.To == jobs.Completed || m.To == jobs.Failed) && m.From != jobs.Running {
			t.Errorf("got transition from %s to %s, want only running tasks to complete or fail", m.From, m.To)
		}
	}
}
